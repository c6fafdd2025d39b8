// SPDX-License-Identifier: Apache-2.0
// Memory that a call needs for itself, in sizes that a program decides.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <new>

#include "shmem/result.hpp"

namespace shmem {

/// Bytes without values. An Error instead of an exception, which would end the process in a C call, if there are none.
class Room {
 public:
  Room() = default;
  /// `use` goes on after "the 64 bytes": "that ...".
  static Result<Room> of(std::size_t bytes, const char* use) {
    Room room;
    try {
      room.bytes_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    } catch (const std::bad_alloc&) {
      return fail(std::errc::not_enough_memory,
                  fmt::format("shmem: there is no memory for the {} bytes {}", bytes, use));
    }
    room.size_ = bytes;
    return room;
  }
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace shmem
