// SPDX-License-Identifier: Apache-2.0
// Whether a plan that spares blocks leaves every sequence whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "shmem/kv/sequence_plan.hpp"

namespace kv_program {

/// Carries the plan out on names of contents, where equal hashes are equal contents, and looks for each sequence at the
/// place that the plan gives it. Returns which block is not what it was, or "". REQUIRES: a plan for these sequences.
std::string find_misplaced(std::span<const shmem::kv::Sequence> sequences, const shmem::kv::SequencePlan& plan,
                           const shmem::kv::Planning& planning);

}  // namespace kv_program
