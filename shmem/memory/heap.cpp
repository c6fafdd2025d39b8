// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/heap.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <iterator>
#include <limits>

namespace shmem {

namespace {

std::size_t round_up(std::size_t value, std::size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

Heap::Heap(std::size_t size) : size_(size & ~(kMinAlignment - 1)) {
  if (size_ > 0) free_.emplace(0, size_);
}

std::optional<std::size_t> Heap::allocate(std::size_t size, std::size_t alignment) {
  assert(size > 0 && std::has_single_bit(alignment));
  if (size > size_ || alignment > size_) return std::nullopt;
  alignment = std::max(alignment, kMinAlignment);
  const std::size_t taken = round_up(size, kMinAlignment);

  for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
    const auto [start, length] = *gap;
    const std::size_t offset = round_up(start, alignment);
    const std::size_t before = offset - start;
    if (before > length || taken > length - before) continue;

    if (before == 0) {
      free_.erase(gap);
    } else {
      gap->second = before;
    }
    const std::size_t after = length - before - taken;
    if (after > 0) free_.emplace(offset + taken, after);
    live_.emplace(offset, Block{taken, size});
    used_ += taken;
    return offset;
  }
  return std::nullopt;
}

bool Heap::release(std::size_t offset) {
  const auto block = live_.find(offset);
  if (block == live_.end()) return false;
  const std::size_t taken = block->second.taken;
  live_.erase(block);
  used_ -= taken;

  const auto gap = free_.emplace(offset, taken).first;
  if (const auto next = std::next(gap); next != free_.end() && offset + taken == next->first) {
    gap->second += next->second;
    free_.erase(next);
  }
  if (gap == free_.begin()) return true;
  if (const auto previous = std::prev(gap); previous->first + previous->second == offset) {
    previous->second += gap->second;
    free_.erase(gap);
  }
  return true;
}

std::optional<std::size_t> Heap::size_of(std::size_t offset) const {
  const auto block = live_.find(offset);
  if (block == live_.end()) return std::nullopt;
  return block->second.requested;
}

Heap::Stats Heap::stats() const {
  std::size_t largest = 0;
  for (const auto& [start, length] : free_) largest = std::max(largest, length);
  return {size_, used_, largest};
}

}  // namespace shmem
