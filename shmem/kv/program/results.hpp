// SPDX-License-Identifier: Apache-2.0
// What a run has come to: for the text, the JSON and the picture alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kv_program {

/// The tokens of each PE.
using Load = std::vector<std::int64_t>;
/// How much more than the mean the fullest PE has: 0 is even, 0.5 half as much again. 0 if nobody has any.
double imbalance(const Load& load);

struct RoundResult {
  Load before, after;
  std::int64_t blocks = 0;  // that are moved, K and V of all layers
  std::int64_t spared = 0;  // that were not, as the receiver has equal ones
  // Bytes per second of all PEs together; of rounds that have moved none, nothing.
  std::optional<double> shuffling, copying;
  /// Of the time of the shuffle, what one without blocks takes.
  std::optional<double> barrier_share;
};

/// Mean times in microseconds.
struct BarrierTimes {
  std::optional<double> device;  // nothing: there is no device, or it has been lost
  double software;
  std::string counters;  // the device's own, after its barriers
};

/// Barriers of the world team.
struct BarrierCounts {
  std::uint64_t by_device = 0, by_software = 0;
};

struct Results {
  int pes = 1;
  std::string device, trace;  // for people
  std::int64_t requests = 0;
  std::int64_t scale = 1;
  std::vector<RoundResult> rounds;
  std::int64_t blocks = 0, bytes = 0;  // moved, with repeats
  std::optional<BarrierTimes> barriers;
  BarrierCounts counts{};
  bool checked = false;
  std::string failure;  // "" after success

  /// Of rounds that have moved blocks: the one in the middle says more than the mean on a machine that does other
  /// things as well. Nothing if there are none.
  [[nodiscard]] std::optional<double> median(std::optional<double> RoundResult::*value) const;
  /// Means over the rounds.
  [[nodiscard]] double imbalance_before() const { return mean_imbalance(&RoundResult::before); }
  [[nodiscard]] double imbalance_after() const { return mean_imbalance(&RoundResult::after); }
  /// The tokens of each PE, as means over the rounds; empty if nobody knows.
  [[nodiscard]] std::vector<double> mean_load(Load RoundResult::*load) const;
  [[nodiscard]] std::int64_t spared() const;

 private:
  [[nodiscard]] double mean_imbalance(Load RoundResult::*load) const;
};

}  // namespace kv_program
