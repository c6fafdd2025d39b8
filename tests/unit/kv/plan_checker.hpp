// SPDX-License-Identifier: Apache-2.0
// Executes a plan on caches whose blocks are numbers, and checks the sequences afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/planner/sequence_plan.hpp"

namespace kv_test {

/// Sequences that own their tables.
struct OwnedSequence {
  std::int64_t pe;
  std::int64_t tokens;
  std::vector<std::int64_t> blocks;
  std::vector<std::uint64_t> hashes{};
};

std::vector<shmem::kv::Sequence> views(const std::vector<OwnedSequence>& sequences);

/// The first error of the plan, or "". Checks that destinations are free blocks of the cache and used once, that after
/// the moves each sequence is complete at its placement, and that a balanced plan sends no PE contents that it has.
std::string check_plan(const std::vector<OwnedSequence>& before, const shmem::kv::Planning& planning,
                       const shmem::kv::SequencePlan& plan);

/// The tokens of each PE, after the plan if there is one.
std::vector<std::int64_t> tokens_of(const std::vector<OwnedSequence>& sequences, const shmem::kv::SequencePlan* plan,
                                    std::int64_t pes);

/// The sum of the PEs' distances from the mean, times the number of PEs.
std::int64_t imbalance(const std::vector<std::int64_t>& tokens);

}  // namespace kv_test
