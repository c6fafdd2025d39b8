// SPDX-License-Identifier: Apache-2.0
// Which parts of a symmetric heap are in use. Offsets only: no memory is touched, so all PEs compute the same answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace shmem {

/// A piece of a heap, live or free.
struct HeapBlock {
  std::size_t offset;
  std::size_t taken;      // bytes of the heap
  std::size_t requested;  // bytes asked for; 0: free

  [[nodiscard]] bool free() const { return requested == 0; }
  [[nodiscard]] std::size_t end() const { return offset + taken; }
};

/// An AVL tree whose nodes know the largest free block below them. It begins with one block; its users keep the blocks
/// in order and adjacent. Not thread-safe.
///
/// Everything takes O(log n) of n blocks in the worst case, except first_fit. An Index stays valid until its block, or
/// the block before it, is erased.
class BlockTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  explicit BlockTree(const HeapBlock& whole);

  [[nodiscard]] const HeapBlock& operator[](Index index) const { return nodes_[index].block; }
  [[nodiscard]] std::size_t largest_free() const { return nodes_[root_].largest; }
  /// The height: at most 1.45 log2(n + 2) with n blocks.
  [[nodiscard]] int height() const { return nodes_[root_].height; }

  /// The block that contains `offset`. REQUIRES: offset < the heap's end.
  [[nodiscard]] Index find(std::size_t offset) const;
  /// The free block at the lowest offset that fits `size` bytes at a multiple of `alignment` (a power of two), or
  /// kNone. O(log n) if all offsets are such multiples. Otherwise O((1 + k) log n), where k earlier blocks have `size`
  /// bytes, but not after a multiple of the alignment; each of these is smaller than size + alignment. REQUIRES: size >
  /// 0.
  [[nodiscard]] Index first_fit(std::size_t size, std::size_t alignment) const;
  [[nodiscard]] Index next(Index index) const;
  [[nodiscard]] Index previous(Index index) const;

  /// Changes a block in place; its neighbours stay the same.
  void set(Index index, const HeapBlock& block);
  /// Inserts `block` right after `index`.
  Index insert_after(Index index, const HeapBlock& block);
  /// REQUIRES: it is not the only block.
  void erase(Index index);

 private:
  struct Node {
    HeapBlock block;
    std::size_t largest;  // free block in this subtree; 0: none
    Index parent, left, right;
    std::int32_t height;
  };

  [[nodiscard]] int height(Index index) const { return index == kNone ? 0 : nodes_[index].height; }
  [[nodiscard]] std::size_t largest(Index index) const { return index == kNone ? 0 : nodes_[index].largest; }
  [[nodiscard]] Index leftmost(Index index) const;
  [[nodiscard]] Index rightmost(Index index) const;
  [[nodiscard]] Index first_fit_below(Index top, std::size_t size, std::size_t alignment) const;
  Index make(const HeapBlock& block, Index parent);
  void summarise(Index index);
  void replace_child(Index parent, Index child, Index by);
  Index rotate(Index top, Index Node::*towards, Index Node::*from);
  Index balance(Index top);
  void repair_upwards(Index from);

  std::vector<Node> nodes_;
  std::vector<Index> unused_;
  Index root_;
};

/// First fit with coalescing; deterministic: equal histories of calls give equal offsets. Every call takes O(log n) of
/// n blocks; an alignment beyond kMinAlignment may take more (BlockTree::first_fit). Not thread-safe.
class Heap {
 public:
  static constexpr std::size_t kMinAlignment = 64;

  explicit Heap(std::size_t size);

  /// The offset of `size` free bytes at a multiple of `alignment` (a power of two; at least kMinAlignment is used), or
  /// nothing if they do not fit. REQUIRES: size > 0.
  std::optional<std::size_t> allocate(std::size_t size, std::size_t alignment = kMinAlignment);
  /// False if no live block begins at `offset`.
  bool release(std::size_t offset);
  /// Shrinks a block in place, or grows it into the free block after it. False, with nothing changed, if it does not
  /// fit or no live block begins at `offset`. REQUIRES: size > 0.
  bool resize(std::size_t offset, std::size_t size);

  /// The requested size, or nothing if no live block begins at `offset`.
  [[nodiscard]] std::optional<std::size_t> size_of(std::size_t offset) const;
  /// The block, live or free, that contains `offset`; nothing beyond the heap's end.
  [[nodiscard]] std::optional<HeapBlock> block_around(std::size_t offset) const;

  /// All blocks, in their order.
  [[nodiscard]] std::vector<HeapBlock> blocks() const;
  /// Those of another heap of the same size. False, with nothing changed, if they are not. REQUIRES: no block is live.
  bool adopt(const std::vector<HeapBlock>& blocks);

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
