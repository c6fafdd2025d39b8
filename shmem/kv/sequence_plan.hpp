// SPDX-License-Identifier: Apache-2.0
// Plans that even out the tokens of PEs, from what their sequences are.
#pragma once

#include <cstdint>
#include <vector>

#include "shmem/kv/move.hpp"
#include "shmem/kv/placement.hpp"
#include "shmem/kv/sequences.hpp"

namespace shmem::kv {

/// How tokens lie on PEs.
struct Spread {
  std::int64_t pes = 0;
  std::int64_t tokens = 0;  // of all
  std::int64_t most = 0;    // of one
  /// The sum over the PEs of how far each is from the mean, times the number of PEs: a whole number.
  std::int64_t imbalance_times_pes = 0;

  [[nodiscard]] double mean() const { return static_cast<double>(tokens) / static_cast<double>(pes); }
  /// Tokens.
  [[nodiscard]] double imbalance() const { return static_cast<double>(imbalance_times_pes) / static_cast<double>(pes); }
  /// 1 if all have the same, or nobody anything.
  [[nodiscard]] double most_to_mean() const { return tokens == 0 ? 1 : static_cast<double>(most) / mean(); }
};

/// Of what PEs hold, tokens each.
Spread spread_of(const std::vector<std::int64_t>& tokens);

struct PlanSummary {
  Spread before, after;
  std::int64_t sequences_moved = 0;
  std::int64_t blocks_moved = 0;
  std::int64_t blocks_spared = 0;  // of sequences that move, not sent since the receiver has or gets them otherwise
};

struct SequencePlan {
  std::vector<Move> moves;
  Placements placements;
  PlanSummary summary;
};

/// A pure function. Destinations are blocks that no sequence names, and each is one once; so the order of the moves
/// does not matter.
///
/// Pair: the plan of plan_pairs() (planner.hpp), with all blocks of the tables, to the lowest free blocks of the
/// receiver.
///
/// Balanced: see Assignment. Blocks whose hash the receiver has are not sent, nor those behind a sequence's last token,
/// which get a place. The result, where the mean is that of all PEs:
/// - No PE is taken past the mean, but by the tolerance. Without one, the plan moves half as many tokens as imbalance
///   goes away, and no plan moves fewer; and fewer blocks than those tokens fill, plus one for each sequence.
/// - A PE that is further above the mean than the tolerance is less far above it than its shortest sequence that may
///   move is long, or there is no PE that this sequence takes no further past the mean than by the tolerance and that
///   has room for it.
/// - Receivers that are full get nothing; the sequences go elsewhere or stay.
///
/// Errors: those of Holdings; pair: a receiver without room, blocks that sequences share when sources are cleared (with
/// the balanced planner such sequences stay).
Result<SequencePlan> plan_sequences(std::span<const Sequence> sequences, const Planning& planning);

}  // namespace shmem::kv
