// SPDX-License-Identifier: Apache-2.0
// Plans that balance the tokens of PEs.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/operator/plan.hpp"
#include "kv/planner/placement.hpp"
#include "kv/planner/sequences.hpp"

namespace shmem::kv {

/// How tokens are spread over PEs.
struct Spread {
  std::int64_t pes = 0;
  std::int64_t tokens = 0;  // of all PEs
  std::int64_t most = 0;    // of one PE
  /// The sum over the PEs of how far each is from the mean, times the number of PEs: a whole number.
  std::int64_t imbalance_times_pes = 0;

  [[nodiscard]] double mean() const { return static_cast<double>(tokens) / static_cast<double>(pes); }
  /// Tokens.
  [[nodiscard]] double imbalance() const { return static_cast<double>(imbalance_times_pes) / static_cast<double>(pes); }
  /// 1 if all PEs have the same, or if there are no tokens.
  [[nodiscard]] double most_to_mean() const { return tokens == 0 ? 1 : static_cast<double>(most) / mean(); }
};

/// `tokens`: of each PE.
Spread spread_of(const std::vector<std::int64_t>& tokens);

struct PlanSummary {
  Spread before{}, after{};
  std::int64_t sequences_moved = 0;
  std::int64_t blocks_moved = 0;
  std::int64_t blocks_spared = 0;  // of moved sequences, not sent because the receiver has or gets them otherwise
};

struct SequencePlan {
  std::vector<Move> moves{};
  Placements placements{};
  PlanSummary summary{};
};

/// A pure function. Each destination is a block that no sequence names, and is used once, so that the order of the
/// moves does not matter.
///
/// Pair: choose_pairs(); all blocks of the tables go to the lowest free blocks of the receiver.
///
/// Balanced: see Assignment. Blocks whose hash the receiver has are not sent. Nor are those after a sequence's last
/// token, which only get a place. Properties of the result:
/// - No PE is taken past the mean by more than the tolerance.
/// - Without a tolerance, the plan moves half as many tokens as the imbalance shrinks by, and no plan moves fewer. It
///   moves fewer blocks than those tokens fill, plus one per sequence.
/// - A PE remains further above the mean than the tolerance in two cases only: its distance is less than the length of
///   its shortest sequence that may move, or no PE has room for this sequence within mean plus tolerance.
/// - PEs without room get nothing. The sequences go elsewhere or stay.
///
/// Errors: those of Holdings; pair: a receiver without room, shared blocks that would be cleared (the balanced planner
/// leaves such sequences where they are).
Result<SequencePlan> plan_sequences(std::span<const Sequence> sequences, const Planning& planning);

}  // namespace shmem::kv
