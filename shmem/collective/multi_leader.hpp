// SPDX-License-Identifier: Apache-2.0
// Collective calls with much data of teams on several nodes: all members of a node share the inter-node work, each on
// the rail of its place (SpanningTeam::rail). Semantics as in on_nodes.hpp.
#pragma once

#include <span>

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"

namespace shmem::multi_leader {

/// There are several rails, and enough bytes to be worth the syncs.
bool pays(const Members& members, std::size_t bytes);

/// `root_node` is the index of the root's node among the team's nodes. `to`: where this member takes the data; nullptr:
/// it does not. On the nodes without the root `dest` has shares of it meanwhile. REQUIRES: pays().
Result<void> broadcast(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                       int root_node, std::byte* to);
/// Memory of this member alone: in place of its `source`, of which the others do not read its share_here(), and, if it
/// takes the result, in place of its `dest`.
struct OwnBuffers {
  const std::byte* from;
  std::byte* to;  // nullptr: it does not
};
/// REQUIRES: pays().
Result<void> reduce(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                    std::size_t count, const OwnBuffers* own = nullptr);
/// Each member combines blocks, not the leader of its node all of them (on_nodes::reduce_scatter): there are as many
/// members on each node, and `bytes` enough, all blocks together, or so few nodes, that each may send to each.
bool scatters(const Members& members, std::size_t bytes);
/// Combines the members' blocks for this one in `to`. Each block crosses the network once. What the members of a node
/// combine is in their `stage`, a block of `size` bytes for each member; this one's blocks for itself and for members
/// at its place are taken from `own`, by member, instead, and overwritten in the stage. `to` may be among `own`.
/// REQUIRES: scatters().
Result<void> reduce_scatter(const Members& members, const Reduction& reduction, std::byte* stage, std::size_t size,
                            std::span<const std::byte* const> own, std::byte* to);
/// Whether this member reads its own block for that one, and no other member does.
bool is_at_my_place(const Members& members, int member);
/// The part of so many bytes that this member combines for its node.
Share share_here(const Members& members, std::size_t size);

/// Contiguous blocks of `block` bytes, from each member to each member.
Result<void> alltoall(const Members& members, void* dest, const void* source, std::size_t block);

}  // namespace shmem::multi_leader
