// SPDX-License-Identifier: Apache-2.0
// A run over a trace, and the barriers of the world team.
#pragma once

#include "tools/kv_shuffle/results.hpp"

namespace kv_program {

/// Collective. Fills `results`, also after a failure.
Outcome replay(const Options& options, Agreement& agreement, Results& results);

/// The device that the world team's barriers use, or why they use none.
std::string describe_device();
/// Collective. Measures barriers with the device and without. The world team uses software barriers afterwards.
void measure_barriers(Agreement& agreement, Results& results);

}  // namespace kv_program
