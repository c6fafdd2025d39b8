// SPDX-License-Identifier: Apache-2.0
// Shared memory that unmaps itself.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "base/result.hpp"

namespace base {

/// Owns a mapping, or none (data() is null). Not thread-safe; what it maps may be used by anybody who may.
class Mapping {
 public:
  Mapping() = default;
  /// Takes over what mmap gave; MAP_FAILED makes none.
  Mapping(void* mapped, std::size_t size) noexcept;
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

  /// The first `size` bytes of `fd`, readable and writable, shared with all that map it, not in core dumps.
  /// The byte at `aligned` stands at a multiple of `alignment` (a power of two). `fd` may be closed afterwards.
  /// REQUIRES: size > 0; `aligned` is a multiple of the page size of `fd`.
  static Result<Mapping> share(int fd, std::size_t size, std::size_t alignment = 1, std::size_t aligned = 0);

  /// The `size` bytes at `offset` of `fd`, as share(). REQUIRES: size > 0; both are multiples of the page size of `fd`.
  static Result<Mapping> share_part(int fd, std::size_t size, std::size_t offset);

  /// The `size` bytes at `offset` of `fd`, readable only: also of a memfd that is sealed against writing.
  /// REQUIRES: size > 0; `offset` is a multiple of the page size of `fd`.
  static Result<Mapping> read_only(int fd, std::size_t size, std::size_t offset = 0);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace base
