// SPDX-License-Identifier: Apache-2.0
// The plan of each round, the same on all PEs: PE 0 reads the trace, and every PE plans.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/kv_shuffle/options.hpp"
#include "tools/kv_shuffle/results.hpp"
#include "tools/kv_shuffle/trace.hpp"

namespace kv_program {

/// A PE's row of the pair table, and its block tables, which count only if it sends.
struct PairRow {
  std::int64_t partner = 0;
  std::int64_t operation = 1;  // kSend; any other number receives
  std::vector<std::int64_t> source{}, destination{};
};
constexpr std::int64_t kSend = 0, kReceive = 1;
using PairPlan = std::vector<PairRow>;

struct DestroyPlan {
  void operator()(shmemx_kv_plan_t* plan) const { shmemx_kv_plan_destroy(plan); }
};
using PlanHandle = std::unique_ptr<shmemx_kv_plan_t, DestroyPlan>;

/// The error of a call that has just failed.
Error library_error(int error, const std::string& doing = "");

/// The plan of one round, the same on all PEs.
struct RoundPlan {
  PlanHandle plan{};
  PairPlan pairs{};         // the same moves, for plans that copy in pairs; otherwise empty
  std::int64_t spared = 0;  // blocks that are not sent because the receiver has them
  Load before{}, after{};

  [[nodiscard]] std::span<const shmemx_kv_move_t> moves() const;
};

/// Errors: those of shmemx_kv_plan_balance; with --check, a plan that loses a block.
Result<RoundPlan> plan_round(const Options& options, TraceWindow window);
/// The round that executes these tables.
Result<RoundPlan> round_of_pairs(PairPlan pairs);

/// Applies the moves to names of contents, where equal hashes are equal contents, and looks up each sequence at its
/// placement. Returns which block is missing, or "". REQUIRES: a placement for each sequence.
std::string find_misplaced(std::span<const shmemx_kv_sequence_t> sequences, std::span<const shmemx_kv_move_t> moves,
                           std::span<const shmemx_kv_placement_t> placements, int pes, const Geometry& geometry);

/// Construction and destruction are collective.
class RoundPlanner {
 public:
  explicit RoundPlanner(const Options& options);
  [[nodiscard]] bool ok() const { return words_.get() != nullptr; }

  /// Opens the trace on PE 0; does nothing elsewhere. Error: it cannot be read, or a line is malformed.
  Result<void> open();
  /// REQUIRES: PE 0.
  [[nodiscard]] const WindowDealer& dealer() const { return *dealer_; }

  /// Collective: the plan for the next window.
  Result<RoundPlan> next();
  /// The share of the trace's requests dealt so far: 1 or more at its end.
  [[nodiscard]] double share_of_trace() const { return share_; }

 private:
  /// The largest window: half a cache of sequences of one block for each PE, each with a hash.
  [[nodiscard]] std::size_t most_words() const;
  Result<void> publish_window();
  TraceWindow fetch_window();

  const Options& options_;
  int pes_;
  double share_ = 0;
  Agreement agreement_;
  SymmetricMemory words_;  // of PE 0: requests dealt, all requests; for each PE its number of sequences, and these
  std::optional<WindowDealer> dealer_;
};

}  // namespace kv_program
