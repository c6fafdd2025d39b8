// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/heap.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace shmem {

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
  if (size > size_ || alignment > size_) return std::nullopt;
  alignment = std::max(alignment, kMinAlignment);
  const std::size_t taken = round_up(size, kMinAlignment);
  BlockTree::Index index = blocks_.first_fit(taken, alignment);
  if (index == BlockTree::kNone) return std::nullopt;

  const HeapBlock gap = blocks_[index];
  const HeapBlock live{round_up(gap.offset, alignment), taken, size};
  if (live.offset == gap.offset) {
    blocks_.set(index, live);
  } else {
    blocks_.set(index, free_block(gap.offset, live.offset));
    index = blocks_.insert_after(index, live);
  }
  if (live.end() < gap.end()) blocks_.insert_after(index, free_block(live.end(), gap.end()));
  used_ += taken;
  ++live_;
  return live.offset;
}

bool Heap::release(std::size_t offset) {
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone) return false;
  const HeapBlock block = blocks_[index];
  used_ -= block.taken;
  --live_;
  blocks_.set(index, free_block(block.offset, block.end()));
  join_with_next(index);
  const BlockTree::Index previous = blocks_.previous(index);
  if (previous != BlockTree::kNone && blocks_[previous].free()) join_with_next(previous);
  return true;
}

bool Heap::resize(std::size_t offset, std::size_t size) {
  assert(size > 0);
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone || size > size_) return false;
  const HeapBlock block = blocks_[index];
  const BlockTree::Index next = blocks_.next(index);
  const std::size_t room = next != BlockTree::kNone && blocks_[next].free() ? blocks_[next].end() : block.end();
  const HeapBlock resized{offset, round_up(size, kMinAlignment), size};
  if (resized.end() > room) return false;

  if (room > block.end()) blocks_.erase(next);
  blocks_.set(index, resized);
  if (resized.end() < room) blocks_.insert_after(index, free_block(resized.end(), room));
  used_ += resized.taken - block.taken;
  return true;
}

std::optional<std::size_t> Heap::size_of(std::size_t offset) const {
  const BlockTree::Index index = live_block(offset);
  if (index == BlockTree::kNone) return std::nullopt;
  return blocks_[index].requested;
}

std::optional<HeapBlock> Heap::block_around(std::size_t offset) const {
  if (offset >= size_) return std::nullopt;
  return blocks_[blocks_.find(offset)];
}

BlockTree::Index Heap::live_block(std::size_t offset) const {
  if (offset >= size_) return BlockTree::kNone;
  const BlockTree::Index index = blocks_.find(offset);
  return blocks_[index].offset == offset && !blocks_[index].free() ? index : BlockTree::kNone;
}

void Heap::join_with_next(BlockTree::Index free_index) {
  const BlockTree::Index next = blocks_.next(free_index);
  if (next == BlockTree::kNone || !blocks_[next].free()) return;
  const HeapBlock joined = free_block(blocks_[free_index].offset, blocks_[next].end());
  blocks_.erase(next);
  blocks_.set(free_index, joined);
}

}  // namespace shmem
