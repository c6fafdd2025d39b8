// SPDX-License-Identifier: Apache-2.0
// The device of the world team, and the time of a barrier with it and without.
#pragma once

#include <string>

#include "shmem/kv/program/results.hpp"
#include "shmem/kv/program/world.hpp"

namespace kv_program {

/// Which device the world team's barriers use, or why none. Asked before anything changes that.
std::string describe_device();

/// Collective. The world team uses software barriers afterwards.
BarrierTimes time_barriers(Agreement& agreement);

BarrierCounts count_barriers();

}  // namespace kv_program
