// SPDX-License-Identifier: Apache-2.0
// Shared memory that unmaps itself.
#pragma once

#include <cstddef>
#include <utility>

#include "shmem/result.hpp"

namespace shmem {

/// Owns a mapping, or none (data() is null). Not thread-safe; what it maps may be used by anybody who may.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();

  /// The first `size` bytes of `fd`, readable and writable, shared with everybody who maps it, left out of core dumps.
  /// The byte at `aligned` stands at a multiple of `alignment` (a power of two). `fd` may be closed afterwards.
  /// REQUIRES: size > 0; `aligned` is a multiple of the page size of `fd`.
  static Result<Mapping> share(int fd, std::size_t size, std::size_t alignment = 1, std::size_t aligned = 0);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace shmem
