// SPDX-License-Identifier: Apache-2.0
// Plays a plan with caches whose blocks are numbers, and looks at what has become of the sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shmem/kv/sequence_plan.hpp"

namespace kv_test {

/// Sequences that own their tables.
struct OwnedSequence {
  std::int64_t pe;
  std::int64_t tokens;
  std::vector<std::int64_t> blocks;
  std::vector<std::uint64_t> hashes{};
};

std::vector<shmem::kv::Sequence> views(const std::vector<OwnedSequence>& sequences);

/// What is wrong with the plan, or "": destinations are free blocks of the cache, each used once; after the moves each
/// sequence is whole where its placement says; nobody was given a block twice, or contents that it had.
std::string check_plan(const std::vector<OwnedSequence>& before, const shmem::kv::Planning& planning,
                       const shmem::kv::SequencePlan& plan);

/// The tokens of each PE, before the plan or, if there is one, behind it.
std::vector<std::int64_t> tokens_of(const std::vector<OwnedSequence>& sequences, const shmem::kv::SequencePlan* plan,
                                    std::int64_t pes);

/// The sum of what the PEs are away from the mean, times the number of PEs.
std::int64_t imbalance(const std::vector<std::int64_t>& tokens);

}  // namespace kv_test
