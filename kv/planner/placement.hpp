// SPDX-License-Identifier: Apache-2.0
// Which blocks of the receiver sequences get that change their PE.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/operator/plan.hpp"
#include "kv/planner/block_index.hpp"
#include "kv/planner/sequences.hpp"

namespace shmem::kv {

/// The place of a sequence. A view of Placements.
struct Placement {
  std::int64_t pe;
  std::span<const std::int64_t> blocks;
};

/// The places of all sequences of a plan, in their order.
class Placements {
 public:
  void add(std::int64_t pe, std::span<const std::int64_t> blocks) {
    pes_.push_back(pe);
    blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
    ends_.push_back(blocks_.size());
  }

  [[nodiscard]] std::size_t size() const { return pes_.size(); }
  [[nodiscard]] Placement operator[](std::size_t sequence) const {
    const std::size_t begin = sequence == 0 ? 0 : ends_[sequence - 1];
    return {pes_[sequence], std::span(blocks_).subspan(begin, ends_[sequence] - begin)};
  }

 private:
  std::vector<std::int64_t> pes_;
  std::vector<std::int64_t> blocks_;  // of all sequences, one after the other
  std::vector<std::size_t> ends_;
};

/// Gives sequences blocks at their new PEs: the lowest that are free before the plan. Used once.
class Placer {
 public:
  /// Contents that the receiver has according to `held` are not sent.
  Placer(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning, BlockIndex held);

  /// The next sequence of `sequences` goes to this PE, or stays if this is its own. REQUIRES: room.
  void place(std::int64_t pe);

  [[nodiscard]] std::int64_t blocks_spared() const { return spared_; }
  std::vector<Move> take_moves() { return std::move(moves_); }
  Placements take_placements() { return std::move(placements_); }

 private:
  /// Iterates over the free blocks of a PE.
  struct FreeBlocks {
    std::int64_t next = 0;
    std::size_t next_used = 0;  // index in the list of used blocks
  };

  std::int64_t allocate(std::size_t pe);
  std::int64_t place_block(const Sequence& sequence, std::size_t i, std::int64_t pe);

  std::span<const Sequence> sequences_;
  const Holdings& holdings_;
  const Planning& planning_;
  BlockIndex held_;
  std::vector<FreeBlocks> free_;     // [pe]
  std::vector<std::int64_t> table_;  // of the current sequence
  std::vector<Move> moves_;
  Placements placements_;
  std::int64_t spared_ = 0;
};

}  // namespace shmem::kv
