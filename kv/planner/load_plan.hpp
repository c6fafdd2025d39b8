// SPDX-License-Identifier: Apache-2.0
// Which member of an exchange shall have which blocks, so that each carries its part of the load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shmem/result.hpp"

namespace shmem::kv {

/// What a member can take.
struct MemberShare {
  std::int64_t weight = 1;  // its part of the load is in proportion to it
  std::int64_t room = 0;    // blocks besides those that it has
};

/// Blocks that move together.
struct MemberLoad {
  std::size_t member;  // that has them
  std::int64_t load;   // 0: they stay
  std::span<const std::string_view> keys;
};

/// Block `key` of load `load` goes from one member to another.
struct LoadMove {
  std::size_t from, to;
  std::size_t load, key;
};

struct LoadPlan {
  std::vector<LoadMove> moves{};      // by receiver, then by load
  std::vector<std::size_t> owners{};  // the member of each load afterwards
};

constexpr std::int64_t kMostWeight = 1000;

/// The balanced plan of plan_sequences(): loads are its sequences, members its PEs, and equal keys equal contents. A
/// pure function. Errors, which name the load: a member that does not exist, a load that is negative or has no blocks;
/// weights that are not in 0..kMostWeight or all 0; more than can be counted; a tolerance that is not in 0..1.
Result<LoadPlan> plan_loads(std::span<const MemberShare> members, std::span<const MemberLoad> loads, double tolerance);

}  // namespace shmem::kv
