// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/placement_check.hpp"

#include <vector>

namespace kv_program {
namespace {

using shmem::kv::Move;
using shmem::kv::Placement;
using shmem::kv::Sequence;

/// What a block holds: a hash, or the place of a block that is like no other.
struct Content {
  bool is_hash;
  std::uint64_t number;

  friend bool operator==(const Content&, const Content&) = default;
};

class Contents {
 public:
  Contents(std::int64_t pes, std::int64_t blocks) : blocks_(blocks) {
    contents_.reserve(static_cast<std::size_t>(pes * blocks));
    for (std::int64_t i = 0; i < pes * blocks; ++i) {
      contents_.push_back({false, static_cast<std::uint64_t>(i)});
    }
  }
  Content& at(std::int64_t pe, std::int64_t block) {
    return contents_.at(static_cast<std::size_t>(pe * blocks_ + block));
  }

 private:
  std::int64_t blocks_;
  std::vector<Content> contents_;
};

void apply(const std::vector<Move>& moves, Contents& contents) {
  std::vector<Content> sources;
  sources.reserve(moves.size());
  for (const Move& move : moves) {
    sources.push_back(contents.at(move.source_pe, move.source_block));
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    contents.at(moves[i].destination_pe, moves[i].destination_block) = sources[i];
  }
}

}  // namespace

std::string find_misplaced(std::span<const Sequence> sequences, const shmem::kv::SequencePlan& plan,
                           const shmem::kv::Planning& planning) {
  Contents before(planning.pes, planning.geometry.blocks);
  for (const Sequence& sequence : sequences) {
    for (std::size_t i = 0; i < sequence.hashes.size(); ++i) {
      before.at(sequence.pe, sequence.blocks[i]) = {true, sequence.hashes[i]};
    }
  }
  Contents after = before;
  apply(plan.moves, after);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const Sequence& sequence = sequences[s];
    const Placement placement = plan.placements[s];
    for (std::size_t i = 0; i < shmem::kv::filled_blocks(sequence, planning.geometry.page); ++i) {
      if (after.at(placement.pe, placement.blocks[i]) != before.at(sequence.pe, sequence.blocks[i])) {
        return "the plan loses block " + std::to_string(i) + " of sequence " + std::to_string(s) +
               ", which goes from PE " + std::to_string(sequence.pe) + " to PE " + std::to_string(placement.pe);
      }
    }
  }
  return "";
}

}  // namespace kv_program
