// SPDX-License-Identifier: Apache-2.0
// Which buffers of a group's call are used where they are: those in symmetric memory. Each member reads those of the
// others, and combines into them. All of them may do so at once, after a sync and before another one.
#pragma once

#include <vector>

#include "shmem/collective/staged_call.hpp"
#include "shmem/collective/symmetric_memories.hpp"

namespace shmem {

/// What this member shows to the others. Empty if it has nothing to show, if a buffer that they need is elsewhere or
/// overlaps with one that this member writes to meanwhile, or if the call is faster by way of the stages.
std::vector<SymmetricPlace> places_to_show(const StagedCall& call, const SymmetricMemories& memories, int me,
                                           int members);

}  // namespace shmem
