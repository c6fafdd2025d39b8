// SPDX-License-Identifier: Apache-2.0
// Large tables of which a program uses little.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <type_traits>

#include "base/mapping.hpp"

namespace base {

/// `size` elements whose bytes are all zero at first. A page takes memory once something is written to it, unlike one
/// of the heap, which is written when its elements are made. Throws std::bad_alloc.
template <typename T>
class ZeroArray {
 public:
  // Nothing is run for an element: zeros are a value of it, as they are of an atomic number or pointer.
  static_assert(std::is_trivially_destructible_v<T>);

  explicit ZeroArray(std::size_t size)
      : memory_(::mmap(nullptr, size * kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                size * kBytes),
        size_(size) {
    if (!memory_) {
      throw std::bad_alloc();
    }
  }
  [[nodiscard]] T& operator[](std::size_t i) const { return begin()[i]; }
  [[nodiscard]] T* begin() const { return reinterpret_cast<T*>(memory_.data()); }
  [[nodiscard]] T* end() const { return begin() + size_; }

 private:
  static constexpr std::size_t kBytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
  Mapping memory_;
  std::size_t size_;
};

}  // namespace base
