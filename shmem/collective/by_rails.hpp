// SPDX-License-Identifier: Apache-2.0
// Collective calls of much data of teams on several nodes: all members of a node share the work between nodes, each on
// the rail of its place (Span::rail). Semantics as in on_nodes.hpp.
#pragma once

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"

namespace shmem::by_rails {

/// There are rails, more than one, and so many bytes are worth the meetings.
bool pays(const Members& members, std::size_t bytes);

/// REQUIRES: pays(). `root_node` is the place of the root's among the team's nodes.
Result<void> broadcast(const Members& members, std::byte* dest, const void* source, std::size_t size, int root,
                       int root_node);
/// REQUIRES: pays().
Result<void> reduce(const Members& members, const Reduction& reduction, std::byte* dest, const void* source,
                    std::size_t count);

/// Blocks of so many bytes without gaps, each from its member to its member.
Result<void> alltoall(const Members& members, void* dest, const void* source, std::size_t block);

}  // namespace shmem::by_rails
