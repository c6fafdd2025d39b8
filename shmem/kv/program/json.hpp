// SPDX-License-Identifier: Apache-2.0
// What --json writes; kv_shuffle(1) says what it means.
#pragma once

#include <string>

#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"

namespace kv_program {

/// One object, with an end of line.
std::string to_json(const Options& options, const Results& results);

}  // namespace kv_program
