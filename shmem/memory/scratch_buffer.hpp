// SPDX-License-Identifier: Apache-2.0
// Memory that a call needs for itself, in sizes that a program decides.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <new>

#include "shmem/result.hpp"

namespace shmem {

/// Bytes without initial values. Where memory is short, allocate() returns an Error: an exception would end the process
/// in a C call.
class ScratchBuffer {
 public:
  ScratchBuffer() = default;
  /// `use` completes the message "there is no memory for the 64 bytes ...".
  static Result<ScratchBuffer> allocate(std::size_t bytes, const char* use) {
    ScratchBuffer buffer;
    try {
      buffer.bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    } catch (const std::bad_alloc&) {
      return fail(std::errc::not_enough_memory,
                  fmt::format("shmem: there is no memory for the {} bytes {}", bytes, use));
    }
    buffer.size_ = bytes;
    return buffer;
  }
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace shmem
