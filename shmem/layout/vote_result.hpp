// SPDX-License-Identifier: Apache-2.0
// The result of a vote.
#pragma once

#include <cstdint>

namespace shmem {

/// The combined votes of all PEs of a team about their next step.
struct VoteResult {
  bool alike = true;         // all have given the same digest
  bool willing = true;       // and none has refused
  int other = -1;            // if not: the first PE, by its number in the world, that differs from the team's first one
  std::uint64_t number = 0;  // given by the team's first member
};

}  // namespace shmem
