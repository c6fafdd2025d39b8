// SPDX-License-Identifier: Apache-2.0
// The blocks of a heap in the order of their offsets, with the first free one that fits found in logarithmic time.
#pragma once

#include <cstddef>
#include <cstdint>
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

/// An AVL tree whose nodes know the largest free block below them. It begins with one block, and those who change it
/// keep the blocks in order and next to each other. Not thread-safe.
///
/// Everything takes O(log n) of n blocks in the worst case; for first_fit see there. An Index stays good until its
/// block is erased, or the block before it is.
class BlockTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = UINT32_MAX;

  explicit BlockTree(const HeapBlock& whole);

  [[nodiscard]] const HeapBlock& operator[](Index index) const { return nodes_[index].block; }
  [[nodiscard]] std::size_t largest_free() const { return nodes_[root_].largest; }
  /// Of the tree: at most 1.45 log2(n + 2), n blocks.
  [[nodiscard]] int height() const { return nodes_[root_].height; }

  /// The block that `offset` lies in. REQUIRES: offset < the heap's end.
  [[nodiscard]] Index find(std::size_t offset) const;
  /// The free block at the lowest offset in which `size` bytes fit at a multiple of `alignment` (a power of two), or
  /// kNone. Where all offsets are such multiples: O(log n). Otherwise O((1 + k) log n), where k blocks before that one
  /// have `size` bytes, but not behind a multiple of the alignment; each of these is smaller than size + alignment.
  /// REQUIRES: size > 0.
  [[nodiscard]] Index first_fit(std::size_t size, std::size_t alignment) const;
  [[nodiscard]] Index next(Index index) const;
  [[nodiscard]] Index previous(Index index) const;

  /// Changes a block in place; it stays between its neighbours.
  void set(Index index, const HeapBlock& block);
  /// Puts `block` right behind `index`.
  Index insert_after(Index index, const HeapBlock& block);
  /// REQUIRES: it is not the only one.
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

}  // namespace shmem
