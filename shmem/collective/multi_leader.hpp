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
/// `to`: where this member takes the data; nullptr: it does not. On the nodes without the root `dest` has shares of it
/// meanwhile.
Result<void> broadcast(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                       int root_node, std::byte* to);
/// REQUIRES: pays().
/// Memory of this member alone: in place of its `source`, of which the others do not read its share_here(), and, if it
/// takes the result, in place of its `dest`.
struct OwnBuffers {
  const std::byte* from;
  std::byte* to;  // nullptr: it does not
};
Result<void> reduce(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                    std::size_t count, const OwnBuffers* own = nullptr);
/// The part of so many bytes that this member combines for its node.
Share share_here(const Members& members, std::size_t size);

/// Contiguous blocks of `block` bytes, from each member to each member.
Result<void> alltoall(const Members& members, void* dest, const void* source, std::size_t block);

}  // namespace shmem::multi_leader
