// SPDX-License-Identifier: Apache-2.0
// Collective calls with much data of teams on several nodes: all members of a node share the inter-node work, each on
// the rail of its place (SpanningTeam::rail). Semantics as in on_nodes.hpp.
#pragma once

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"

namespace shmem::multi_leader {

/// There are several rails, and enough bytes to be worth the syncs.
bool pays(const Members& members, std::size_t bytes);

/// REQUIRES: pays(). `root_node` is the index of the root's node among the team's nodes.
Result<void> broadcast(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                       int root_node);
/// REQUIRES: pays().
Result<void> reduce(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                    std::size_t count);

/// Contiguous blocks of `block` bytes, from each member to each member.
Result<void> alltoall(const Members& members, void* dest, const void* source, std::size_t block);

}  // namespace shmem::multi_leader
