// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/placement.hpp"

#include <cassert>

namespace shmem::kv {

Placer::Placer(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning, BlockIndex held)
    : sequences_(sequences),
      holdings_(holdings),
      planning_(planning),
      held_(std::move(held)),
      free_(static_cast<std::size_t>(planning.pes)) {}

std::int64_t Placer::allocate(std::size_t pe) {
  FreeBlocks& free = free_[pe];
  const std::vector<std::int64_t>& used = holdings_.used(pe);
  while (free.next_used < used.size() && used[free.next_used] == free.next) {
    ++free.next;
    ++free.next_used;
  }
  assert(free.next < planning_.geometry.blocks);
  return free.next++;
}

std::int64_t Placer::place_block(const Sequence& sequence, std::size_t i, std::int64_t pe) {
  // Ascend SHMEM's plan sends whole tables, whatever is in them.
  const bool balanced = planning_.planner == Planner::kBalanced;
  const bool hashed = balanced && i < sequence.hashes.size();
  if (hashed) {
    if (const auto found = held_.find(sequence.hashes[i], pe)) {
      ++spared_;
      return *found;
    }
  }
  const std::int64_t block = allocate(static_cast<std::size_t>(pe));
  if (!balanced || i < filled_blocks(sequence, planning_.geometry.page)) {
    moves_.push_back({.src_pe = sequence.pe, .src_block = sequence.blocks[i], .dst_pe = pe, .dst_block = block});
  }
  if (hashed) {
    held_.add(sequence.hashes[i], pe, block);
  }
  return block;
}

void Placer::place(std::int64_t pe) {
  const Sequence& sequence = sequences_[placements_.size()];
  if (pe == sequence.pe) {
    placements_.add(pe, sequence.blocks);
    return;
  }
  table_.clear();
  for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
    table_.push_back(place_block(sequence, i, pe));
  }
  placements_.add(pe, table_);
}

}  // namespace shmem::kv
