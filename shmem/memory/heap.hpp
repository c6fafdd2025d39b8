// SPDX-License-Identifier: Apache-2.0
// Which parts of a symmetric heap are taken. Offsets only: no memory is touched, so all PEs compute the same answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace shmem {

/// First fit with coalescing; deterministic: equal histories of calls give equal offsets. Not thread-safe.
class Heap {
 public:
  static constexpr std::size_t kMinAlignment = 64;

  explicit Heap(std::size_t size);

  /// The offset of `size` free bytes at a multiple of `alignment` (a power of two; at least kMinAlignment is used), or
  /// nothing if there is no such room. REQUIRES: size > 0.
  std::optional<std::size_t> allocate(std::size_t size, std::size_t alignment = kMinAlignment);
  /// False if no live block begins at `offset`.
  bool release(std::size_t offset);
  /// The size that was asked for, or nothing if no live block begins at `offset`.
  [[nodiscard]] std::optional<std::size_t> size_of(std::size_t offset) const;

  struct Stats {
    std::size_t size, used, largest_free;
  };
  [[nodiscard]] Stats stats() const;

 private:
  struct Block {
    std::size_t taken;      // bytes taken from the heap
    std::size_t requested;  // bytes asked for
  };
  std::size_t size_;
  std::size_t used_ = 0;
  std::map<std::size_t, std::size_t> free_;  // offset -> size; never adjacent
  std::map<std::size_t, Block> live_;        // offset -> block
};

}  // namespace shmem
