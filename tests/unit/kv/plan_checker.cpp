// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/plan_checker.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace kv_test {
namespace {

using shmem::kv::Move;
using shmem::kv::Planner;
using shmem::kv::Planning;
using shmem::kv::SequencePlan;
using Place = std::pair<std::int64_t, std::int64_t>;  // PE and block

/// The contents of a block: a hash, or, without one, the place where the block was at first.
using Contents = std::pair<std::uint64_t, Place>;

class PlanRun {
 public:
  PlanRun(const std::vector<OwnedSequence>& before, const Planning& planning) : before_(before), planning_(planning) {
    for (const OwnedSequence& sequence : before_) {
      for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
        caches_[{sequence.pe, sequence.blocks[i]}] = contents(sequence, i);
      }
    }
  }

  std::string play(const SequencePlan& plan) {
    auto after = caches_;
    std::set<std::pair<std::int64_t, std::uint64_t>> has;  // PE and hash
    for (const auto& [place, contents] : caches_) {
      has.emplace(place.first, contents.first);
    }
    for (const Move& move : plan.moves) {
      const Place from{move.src_pe, move.src_block};
      const Place to{move.dst_pe, move.dst_block};
      if (caches_.count(from) == 0) {
        return text(move) + ": the source is not in use";
      }
      if (to.first < 0 || to.first >= planning_.pes || to.second < 0 || to.second >= planning_.geometry.blocks) {
        return text(move) + ": the destination does not exist";
      }
      if (caches_.count(to) != 0) {
        return text(move) + ": the destination is in use";
      }
      const Contents& sent = caches_.at(from);
      if (!after.emplace(to, sent).second) {
        return text(move) + ": another move has this destination";
      }
      if (planning_.planner == Planner::kBalanced && sent.first != 0 && !has.emplace(to.first, sent.first).second) {
        return text(move) + ": the receiver has that block";
      }
    }
    return look_at(plan, after);
  }

 private:
  static std::string text(const Move& move) {
    std::ostringstream out;
    out << "block " << move.src_block << " of PE " << move.src_pe << " to block " << move.dst_block << " of PE "
        << move.dst_pe;
    return out.str();
  }

  /// 0 stands for no hash; the tests use no hash 0.
  static Contents contents(const OwnedSequence& sequence, std::size_t i) {
    return i < sequence.hashes.size() ? Contents{sequence.hashes[i], {}}
                                      : Contents{0, {sequence.pe, sequence.blocks[i]}};
  }

  std::string look_at(const SequencePlan& plan, const std::map<Place, Contents>& after) const {
    std::map<Place, Contents> owners;  // the contents of each block that a sequence has named
    for (std::size_t s = 0; s < before_.size(); ++s) {
      const OwnedSequence& sequence = before_[s];
      const auto placement = plan.placements[s];
      const auto full =
          static_cast<std::size_t>((sequence.tokens + planning_.geometry.page - 1) / planning_.geometry.page);
      if (placement.blocks.size() != sequence.blocks.size()) {
        return "sequence " + std::to_string(s) + " has another number of blocks";
      }
      for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
        const Place place{placement.pe, placement.blocks[i]};
        const Contents right = contents(sequence, i);
        const auto found = after.find(place);
        if (i < std::max(full, sequence.hashes.size()) && (found == after.end() || found->second != right)) {
          return "sequence " + std::to_string(s) + " has lost block " + std::to_string(i);
        }
        if (place.second < 0 || place.second >= planning_.geometry.blocks) {
          return "sequence " + std::to_string(s) + " lies outside of the cache";
        }
        const auto [owner, first] = owners.emplace(place, right);
        if (!first && (right.first == 0 || owner->second != right)) {
          return "sequence " + std::to_string(s) + " shares block " + std::to_string(i) + " with others";
        }
      }
    }
    return "";
  }

  const std::vector<OwnedSequence>& before_;
  const Planning& planning_;
  std::map<Place, Contents> caches_;
};

}  // namespace

std::vector<shmem::kv::Sequence> views(const std::vector<OwnedSequence>& sequences) {
  std::vector<shmem::kv::Sequence> result;
  result.reserve(sequences.size());
  for (const OwnedSequence& sequence : sequences) {
    result.push_back({sequence.pe, sequence.tokens, sequence.blocks, sequence.hashes});
  }
  return result;
}

std::vector<std::int64_t> tokens_of(const std::vector<OwnedSequence>& sequences, const SequencePlan* plan,
                                    std::int64_t pes) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(pes));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    tokens[static_cast<std::size_t>(plan == nullptr ? sequences[i].pe : plan->placements[i].pe)] += sequences[i].tokens;
  }
  return tokens;
}

std::int64_t imbalance(const std::vector<std::int64_t>& tokens) {
  const auto pes = static_cast<std::int64_t>(tokens.size());
  std::int64_t all = 0;
  for (const std::int64_t mine : tokens) {
    all += mine;
  }
  std::int64_t sum = 0;
  for (const std::int64_t mine : tokens) {
    sum += std::abs(mine * pes - all);
  }
  return sum;
}

std::string check_plan(const std::vector<OwnedSequence>& before, const Planning& planning, const SequencePlan& plan) {
  if (plan.placements.size() != before.size()) {
    return "another number of sequences";
  }
  return PlanRun(before, planning).play(plan);
}

}  // namespace kv_test
