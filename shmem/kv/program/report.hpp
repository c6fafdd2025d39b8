// SPDX-License-Identifier: Apache-2.0
// What --report draws: load per PE before and after, imbalance in each round, and what it cost.
#pragma once

#include <string>

#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"

namespace kv_program {

/// A picture that needs nothing else: SVG 1.1.
std::string to_svg(const Options& options, const Results& results);

}  // namespace kv_program
