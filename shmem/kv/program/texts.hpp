// SPDX-License-Identifier: Apache-2.0
// What the program says about a run, for people.
#pragma once

#include <string>

#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"

namespace kv_program {

std::string number(double value, int digits);
/// Of a share: 0.25 is "25.0 %".
std::string percent(double share);

/// PEs, plan and caches.
std::string describe_setup(const Options& options, const Results& results);
/// The trace, with what it takes to fit it into the caches.
std::string describe_trace(const Results& results);
/// "12.3 GB/s (88.1 % of memcpy)", or that nothing has moved.
std::string describe_speed(const Results& results);
/// All that has been found out, some lines.
std::string describe_results(const Options& options, const Results& results);

}  // namespace kv_program
