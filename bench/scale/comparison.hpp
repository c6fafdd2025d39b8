// SPDX-License-Identifier: Apache-2.0
// Barriers by several methods in one setting.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/scale/parameters.hpp"
#include "bench/scale/play.hpp"

namespace scale {

struct Setting {
  Parameters parameters;
  int members = 2;
  int pes_per_node = 1;
  double skew = 0;  // mean, nanoseconds
};

/// Nothing where that would take long to play, and grows as fast as its neighbours: npu_v3, n^2 signals, past 708.
std::optional<Outcome> outcome_of(Method method, const Setting& setting);

/// The software way of libshmem that is over first after the last member has come.
struct BestSoftware {
  Method method = Method::kDissemination;
  Outcome outcome;
};
BestSoftware best_software(const Setting& setting);

/// GBAs that a job needs: one for each so many ports.
int switches_for(const Setting& setting);

}  // namespace scale
