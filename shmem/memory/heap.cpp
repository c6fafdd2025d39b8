// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/heap.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shmem {

namespace {

bool fits(const HeapBlock& block, std::size_t size, std::size_t alignment) {
  const std::size_t before = -block.offset & (alignment - 1);
  return block.free() && before <= block.taken && size <= block.taken - before;
}

}  // namespace

BlockTree::BlockTree(const HeapBlock& whole) : root_(make(whole, kNone)) {}

BlockTree::Index BlockTree::find(std::size_t offset) const {
  Index index = root_;
  for (;;) {
    const Node& node = nodes_[index];
    if (offset < node.block.offset) {
      index = node.left;
    } else if (offset >= node.block.end()) {
      index = node.right;
    } else {
      return index;
    }
  }
}

BlockTree::Index BlockTree::first_fit(std::size_t size, std::size_t alignment) const {
  return first_fit_below(root_, size, alignment);
}

// Without an alignment a subtree that is entered contains a fitting block: one path down.
BlockTree::Index BlockTree::first_fit_below(Index top, std::size_t size, std::size_t alignment) const {
  while (largest(top) >= size) {  // never kNone: `size` is above 0
    const Node& node = nodes_[top];
    if (const Index found = first_fit_below(node.left, size, alignment); found != kNone) {
      return found;
    }
    if (fits(node.block, size, alignment)) {
      return top;
    }
    top = node.right;
  }
  return kNone;
}

BlockTree::Index BlockTree::leftmost(Index index) const {
  while (nodes_[index].left != kNone) {
    index = nodes_[index].left;
  }
  return index;
}

BlockTree::Index BlockTree::rightmost(Index index) const {
  while (nodes_[index].right != kNone) {
    index = nodes_[index].right;
  }
  return index;
}

BlockTree::Index BlockTree::next(Index index) const {
  if (nodes_[index].right != kNone) {
    return leftmost(nodes_[index].right);
  }
  Index parent = nodes_[index].parent;
  while (parent != kNone && nodes_[parent].right == index) {
    index = parent;
    parent = nodes_[index].parent;
  }
  return parent;
}

BlockTree::Index BlockTree::previous(Index index) const {
  if (nodes_[index].left != kNone) {
    return rightmost(nodes_[index].left);
  }
  Index parent = nodes_[index].parent;
  while (parent != kNone && nodes_[parent].left == index) {
    index = parent;
    parent = nodes_[index].parent;
  }
  return parent;
}

void BlockTree::set(Index index, const HeapBlock& block) {
  nodes_[index].block = block;
  repair_upwards(index);
}

BlockTree::Index BlockTree::insert_after(Index index, const HeapBlock& block) {
  Index made = kNone;
  if (const Index right = nodes_[index].right; right == kNone) {
    made = make(block, index);
    nodes_[index].right = made;
  } else {
    const Index parent = leftmost(right);
    made = make(block, parent);
    nodes_[parent].left = made;
  }
  repair_upwards(nodes_[made].parent);
  return made;
}

void BlockTree::erase(Index index) {
  Index leaving = index;
  if (nodes_[index].left != kNone && nodes_[index].right != kNone) {
    leaving = leftmost(nodes_[index].right);
    nodes_[index].block = nodes_[leaving].block;
  }
  const Index parent = nodes_[leaving].parent;
  replace_child(parent, leaving, nodes_[leaving].left != kNone ? nodes_[leaving].left : nodes_[leaving].right);
  unused_.push_back(leaving);
  repair_upwards(parent);
  if (leaving != index) {
    repair_upwards(index);  // the first repair may have ended below the moved block
  }
}

BlockTree::Index BlockTree::make(const HeapBlock& block, Index parent) {
  const Node node{block, block.free() ? block.taken : 0, parent, kNone, kNone, 1};
  if (unused_.empty()) {
    nodes_.push_back(node);
    return static_cast<Index>(nodes_.size() - 1);
  }
  const Index index = unused_.back();
  unused_.pop_back();
  nodes_[index] = node;
  return index;
}

void BlockTree::summarise(Index index) {
  Node& node = nodes_[index];
  node.height = 1 + std::max(height(node.left), height(node.right));
  node.largest = std::max({largest(node.left), largest(node.right), node.block.free() ? node.block.taken : 0});
}

void BlockTree::replace_child(Index parent, Index child, Index by) {
  if (by != kNone) {
    nodes_[by].parent = parent;
  }
  if (parent == kNone) {
    root_ = by;
  } else if (nodes_[parent].left == child) {
    nodes_[parent].left = by;
  } else {
    nodes_[parent].right = by;
  }
}

/// Turns the child on side `from` into the parent of `top`, which goes down towards the other side.
BlockTree::Index BlockTree::rotate(Index top, Index Node::*towards, Index Node::*from) {
  const Index risen = nodes_[top].*from;
  const Index moved = nodes_[risen].*towards;
  replace_child(nodes_[top].parent, top, risen);
  nodes_[risen].*towards = top;
  nodes_[top].parent = risen;
  nodes_[top].*from = moved;
  if (moved != kNone) {
    nodes_[moved].parent = top;
  }
  summarise(top);
  summarise(risen);
  return risen;
}

/// Gives the subtree's new top. The heights below differ by 2 at most.
BlockTree::Index BlockTree::balance(Index top) {
  const Index left = nodes_[top].left;
  const Index right = nodes_[top].right;
  if (height(left) > height(right) + 1) {
    if (height(nodes_[left].right) > height(nodes_[left].left)) {
      rotate(left, &Node::left, &Node::right);
    }
    return rotate(top, &Node::right, &Node::left);
  }
  if (height(right) > height(left) + 1) {
    if (height(nodes_[right].left) > height(nodes_[right].right)) {
      rotate(right, &Node::right, &Node::left);
    }
    return rotate(top, &Node::left, &Node::right);
  }
  return top;
}

/// Up to the root, or to the first subtree whose height and largest block are unchanged.
void BlockTree::repair_upwards(Index from) {
  for (Index index = from; index != kNone; index = nodes_[index].parent) {
    const std::int32_t height_before = nodes_[index].height;
    const std::size_t largest_before = nodes_[index].largest;
    summarise(index);
    index = balance(index);
    if (nodes_[index].height == height_before && nodes_[index].largest == largest_before) {
      return;
    }
  }
}

namespace {

std::size_t round_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

HeapBlock free_block(std::size_t offset, std::size_t end) {
  return {offset, end - offset, 0};
}

}  // namespace

Heap::Heap(std::size_t size) : size_(size & ~(kMinAlignment - 1)), blocks_(free_block(0, size_)) {}

std::optional<std::size_t> Heap::allocate(std::size_t size, std::size_t alignment) {
  assert(size > 0 && std::has_single_bit(alignment));
  if (size > size_ || alignment > size_) {
    return std::nullopt;
  }
  alignment = std::max(alignment, kMinAlignment);
  const std::size_t taken = round_up(size, kMinAlignment);
  BlockTree::Index index = blocks_.first_fit(taken, alignment);
  if (index == BlockTree::kNone) {
    return std::nullopt;
  }

  const HeapBlock gap = blocks_[index];
  const HeapBlock live{round_up(gap.offset, alignment), taken, size};
  if (live.offset == gap.offset) {
    blocks_.set(index, live);
  } else {
    blocks_.set(index, free_block(gap.offset, live.offset));
    index = blocks_.insert_after(index, live);
  }
  if (live.end() < gap.end()) {
    blocks_.insert_after(index, free_block(live.end(), gap.end()));
  }
  used_ += taken;
  ++live_;
  return live.offset;
}

bool Heap::release(std::size_t offset) {
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone) {
    return false;
  }
  const HeapBlock block = blocks_[index];
  used_ -= block.taken;
  --live_;
  blocks_.set(index, free_block(block.offset, block.end()));
  join_with_next(index);
  const BlockTree::Index previous = blocks_.previous(index);
  if (previous != BlockTree::kNone && blocks_[previous].free()) {
    join_with_next(previous);
  }
  return true;
}

bool Heap::resize(std::size_t offset, std::size_t size) {
  assert(size > 0);
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone || size > size_) {
    return false;
  }
  const HeapBlock block = blocks_[index];
  const BlockTree::Index next = blocks_.next(index);
  const std::size_t room = next != BlockTree::kNone && blocks_[next].free() ? blocks_[next].end() : block.end();
  const HeapBlock resized{offset, round_up(size, kMinAlignment), size};
  if (resized.end() > room) {
    return false;
  }

  if (room > block.end()) {
    blocks_.erase(next);
  }
  blocks_.set(index, resized);
  if (resized.end() < room) {
    blocks_.insert_after(index, free_block(resized.end(), room));
  }
  used_ += resized.taken - block.taken;
  return true;
}

std::optional<std::size_t> Heap::size_of(std::size_t offset) const {
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone) {
    return std::nullopt;
  }
  return blocks_[index].requested;
}

std::optional<HeapBlock> Heap::block_around(std::size_t offset) const {
  if (offset >= size_) {
    return std::nullopt;
  }
  return blocks_[blocks_.find(offset)];
}

BlockTree::Index Heap::live_block(std::size_t offset) const {
  if (offset >= size_) {
    return BlockTree::kNone;
  }
  const BlockTree::Index index = blocks_.find(offset);
  return blocks_[index].offset == offset && !blocks_[index].free() ? index : BlockTree::kNone;
}

void Heap::join_with_next(BlockTree::Index free_index) {
  const BlockTree::Index next = blocks_.next(free_index);
  if (next == BlockTree::kNone || !blocks_[next].free()) {
    return;
  }
  const HeapBlock joined = free_block(blocks_[free_index].offset, blocks_[next].end());
  blocks_.erase(next);
  blocks_.set(free_index, joined);
}

std::vector<HeapBlock> Heap::blocks() const {
  std::vector<HeapBlock> all;
  for (auto index = blocks_.find(0); index != BlockTree::kNone; index = blocks_.next(index)) {
    all.push_back(blocks_[index]);
  }
  return all;
}

bool Heap::adopt(const std::vector<HeapBlock>& blocks) {
  std::size_t end = 0;
  for (const HeapBlock& block : blocks) {
    if (block.offset != end || block.taken == 0 || block.taken > size_ - end || block.requested > block.taken) {
      return false;
    }
    end = block.end();
  }
  if (end != size_) {
    return false;
  }
  auto index = blocks_.find(0);
  blocks_.set(index, blocks.front());
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    index = blocks_.insert_after(index, blocks[i]);
  }
  for (const HeapBlock& block : blocks) {
    live_ += block.free() ? 0 : 1;
    used_ += block.free() ? 0 : block.taken;
  }
  return true;
}

}  // namespace shmem
