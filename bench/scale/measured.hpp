// SPDX-License-Identifier: Apache-2.0
// Barriers that were measured, to hold the model against.
#pragma once

#include <string>
#include <vector>

#include "bench/scale/parameters.hpp"

namespace scale {

/// Of one algorithm and number of PEs, all in nanoseconds.
struct Measured {
  int pes = 0;
  int processors = 0;
  double least = 0;
  double median = 0;
  double raw = 0;    // round trip of a cache line, before and after
  double base = 0;   // where PEs outnumber processors: the time in which each has given way once; else `raw`
  double ratio = 0;  // median of what was measured to the base, right beside
  std::string name;  // as bench_barrier calls it
};

/// As text, and back. read_measured throws std::runtime_error that names the line.
std::string text_of(const std::vector<Measured>& all);
std::vector<Measured> read_measured(const std::string& name, const std::string& text);

/// What the model says, in nanoseconds; 0 for a name that it does not know.
double modelled(const Measured& what, Parameters parameters);

}  // namespace scale
