// SPDX-License-Identifier: Apache-2.0
// The results of a run, and what the program prints and writes about them: text, JSON and a chart.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tools/kv_shuffle/options.hpp"

namespace kv_program {

/// The tokens of each PE.
using Load = std::vector<std::int64_t>;
/// The excess of the fullest PE over the mean, as a share: 0 is even, 0.5 is 50 % more. 0 without tokens.
double imbalance(const Load& load);

struct RoundResult {
  Load before{}, after{};
  std::int64_t blocks = 0;  // moved; K and V of all layers
  std::int64_t spared = 0;  // not sent because the receiver has equal ones
  // Bytes per second of all PEs together; nothing if the round moved no blocks.
  std::optional<double> shuffling{}, copying{};
  /// The time of a shuffle without blocks, as a share of the time of the shuffle.
  std::optional<double> barrier_share{};
};

/// Mean times in microseconds.
struct BarrierTimes {
  std::optional<double> device{};  // nothing without a device, or if it was lost
  double software = 0;
  std::string counters{};  // of the device, after its barriers
};

/// Barriers of the world team.
struct BarrierCounts {
  std::uint64_t by_device = 0, by_software = 0;
};

struct Results {
  int pes = 1;
  std::string device{}, trace{};
  std::int64_t requests = 0;
  std::int64_t scale = 1;
  std::vector<RoundResult> rounds{};
  std::int64_t blocks = 0, bytes = 0;  // moved, with repeats
  std::optional<BarrierTimes> barriers{};
  BarrierCounts counts{};
  bool checked = false;
  std::string failure{};  // "" after success

  /// Over the rounds that moved blocks; nothing if there are none. A mean would include disturbances of the machine.
  [[nodiscard]] std::optional<double> median(std::optional<double> RoundResult::*value) const;
  /// Means over the rounds.
  [[nodiscard]] double imbalance_before() const { return mean_imbalance(&RoundResult::before); }
  [[nodiscard]] double imbalance_after() const { return mean_imbalance(&RoundResult::after); }
  /// The tokens of each PE, as means over the rounds; empty if they are unknown.
  [[nodiscard]] std::vector<double> mean_load(Load RoundResult::*load) const;
  [[nodiscard]] std::int64_t spared() const;

 private:
  [[nodiscard]] double mean_imbalance(Load RoundResult::*load) const;
};

/// PEs, plan and caches.
std::string describe_setup(const Options& options, const Results& results);
/// The trace, and by how much it is scaled down to fit the caches.
std::string describe_trace(const Results& results);
/// The speed compared with memcpy, or that nothing was moved.
std::string describe_speed(const Results& results);
/// All results, in several lines.
std::string describe_results(const Options& options, const Results& results);
/// A share: 0.25 is "25.0 %".
std::string percent(double share);

/// One JSON object and a newline.
std::string to_json(const Options& options, const Results& results);
/// Load and imbalance before and after, as a self-contained SVG file.
std::string to_svg(const Options& options, const Results& results);

/// The files of --json and --report, on PE 0. Opened before the work, so that a wrong name is reported at once.
class Outputs {
 public:
  Result<void> open(const Options& options);
  /// Without a file name, JSON goes to standard output.
  Result<void> write(const Options& options, const Results& results);

 private:
  std::ofstream json_, report_;
};

}  // namespace kv_program
