// SPDX-License-Identifier: Apache-2.0
// A whole run: rounds of a trace, planned, shuffled, measured and checked.
#pragma once

#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"
#include "shmem/kv/program/world.hpp"

namespace kv_program {

/// Collective. What it finds out is in `results`, also after a failure.
Outcome replay(const Options& options, Agreement& agreement, Results& results);

}  // namespace kv_program
