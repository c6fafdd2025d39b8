// SPDX-License-Identifier: Apache-2.0
// Collectives on buffers in symmetric memory: each member reads those of the others where they are, and combines into
// them. All of them may do so at once, after a sync and before another one.
#pragma once

#include <vector>

#include "shmem/collective/staged.hpp"
#include "shmem/collective/symmetric_memories.hpp"

namespace shmem {

/// What this member shows to the others. Empty if it has nothing to show, if a buffer that they need is elsewhere or
/// overlaps with one that this member writes to meanwhile, or if the call is faster by way of the stages.
std::vector<SymmetricPlace> places_to_show(const StagedCall& call, const SymmetricMemories& memories, int me,
                                           int members);

/// What this member uses of what each member has shown; nullptr: not needed.
struct DirectBuffers {
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;  // of combining calls
};
/// `shown(member)`: the places of a member that has shown some, else nullptr.
template <typename Shown>
DirectBuffers direct_buffers(const StagedCall& call, const SymmetricMemories& memories, int me, int members,
                             Shown shown) {
  const bool has_blocks = call.kind == StagedCall::kScatter || call.kind == StagedCall::kReduceScatter ||
                          call.kind == StagedCall::kAlltoall;
  DirectBuffers buffers;
  for (int member = 0; member < members; ++member) {
    const SymmetricPlace* const places = shown(member);
    const bool takes = call.kind == StagedCall::kAllreduce || (call.kind == StagedCall::kReduce && member == call.root);
    buffers.from.push_back(places != nullptr ? memories.address(places[has_blocks ? me : 0], member) : nullptr);
    buffers.to.push_back(places != nullptr && takes ? memories.address(places[1], member) : nullptr);
  }
  return buffers;
}

/// This member's part of a call.
void move_directly(const StagedCall& call, const DirectBuffers& buffers, const TypedReduction& reduction, int me);

}  // namespace shmem
