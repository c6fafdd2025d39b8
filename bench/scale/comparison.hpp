// SPDX-License-Identifier: Apache-2.0
// Barriers by several methods in one setting.
#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "bench/scale/parameters.hpp"
#include "bench/scale/play.hpp"

namespace scale {

struct Setting {
  int members = 2;
  int pes_per_node = 1;
  double skew = 0;  // mean, nanoseconds
};

struct BestSoftware {
  Method method = Method::kDissemination;
  Outcome outcome;
};

/// With the same parameters. Plays each barrier once, when it is asked for.
class Comparison {
 public:
  explicit Comparison(const Parameters& parameters) : parameters_(parameters) {}

  /// Nothing where that would take long to play: npu_v3, n^2 signals, past 708.
  std::optional<Outcome> outcome(Method method, const Setting& setting);
  /// From the last arrival until the last member goes on, in microseconds. REQUIRES: outcome() has one.
  double time(Method method, const Setting& setting) { return outcome(method, setting)->after_last; }
  /// The software way of libshmem that is over first after the last member has come.
  BestSoftware best_software(const Setting& setting);
  /// GBAs that a job needs: one for each so many ports.
  [[nodiscard]] int switches(const Setting& setting) const;

 private:
  [[nodiscard]] Outcome played(Method method, const Setting& setting) const;

  const Parameters parameters_;
  std::map<std::tuple<Method, int, int, double>, Outcome> played_;  // and the members of Setting
};

}  // namespace scale
