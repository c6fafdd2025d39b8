// SPDX-License-Identifier: Apache-2.0
// Which parts of a symmetric heap are taken. Offsets only: no memory is touched, so all PEs compute the same answers.
#pragma once

#include <cstddef>
#include <optional>

#include "shmem/memory/block_tree.hpp"

namespace shmem {

/// First fit with coalescing; deterministic: equal histories of calls give equal offsets. Every call takes O(log n) of
/// n blocks; an alignment beyond kMinAlignment may take more (BlockTree::first_fit). Not thread-safe.
class Heap {
 public:
  static constexpr std::size_t kMinAlignment = 64;

  explicit Heap(std::size_t size);

  /// The offset of `size` free bytes at a multiple of `alignment` (a power of two; at least kMinAlignment is used), or
  /// nothing if there is no such room. REQUIRES: size > 0.
  std::optional<std::size_t> allocate(std::size_t size, std::size_t alignment = kMinAlignment);
  /// False if no live block begins at `offset`.
  bool release(std::size_t offset);
  /// Shrinks a block where it stands, or grows it into the free block behind it. False if there is no such room (then
  /// nothing has changed), or no live block begins at `offset`. REQUIRES: size > 0.
  bool resize(std::size_t offset, std::size_t size);

  /// The size that was asked for, or nothing if no live block begins at `offset`.
  [[nodiscard]] std::optional<std::size_t> size_of(std::size_t offset) const;
  /// The block, live or free, that `offset` lies in; nothing beyond the heap's end.
  [[nodiscard]] std::optional<HeapBlock> block_around(std::size_t offset) const;

  struct Stats {
    std::size_t size, used, largest_free;
    std::size_t live_blocks;
  };
  [[nodiscard]] Stats stats() const { return {size_, used_, blocks_.largest_free(), live_}; }

 private:
  /// The live block that begins at `offset`, or BlockTree::kNone.
  [[nodiscard]] BlockTree::Index live_block(std::size_t offset) const;
  void join_with_next(BlockTree::Index free_index);

  std::size_t size_;
  std::size_t used_ = 0;
  std::size_t live_ = 0;
  BlockTree blocks_;
};

}  // namespace shmem
