// SPDX-License-Identifier: Apache-2.0
// What comes of a vote.
#pragma once

#include <cstdint>

namespace shmem {

/// What all PEs of a team say of what they are about to do, put together.
struct Verdict {
  bool alike = true;         // all have given the same digest
  bool willing = true;       // and none has said no
  int other = -1;            // if not: the first PE, by its number in the world, that differs from the team's first one
  std::uint64_t number = 0;  // what the team's first member has given
};

}  // namespace shmem
