// SPDX-License-Identifier: Apache-2.0
// Collective calls of teams on several nodes: the first member of each node works for it, with the memory of all its
// members, and exchanges messages with the others. Semantics as in move.hpp and reduce.hpp. REQUIRES: members.spanning.
#pragma once

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"

namespace shmem::on_nodes {

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root);
Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size);
Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size, const CheckTotal& check);
/// Not long blocks with gaps: those are faster directly from member to member.
bool takes_alltoall(const Strided& block);
/// REQUIRES: takes_alltoall(block).
Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block);

/// Combines the members of each node in order, then the nodes: the same bits on all members.
Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count);
/// Combines the members' blocks of `size` bytes, one for each member in the order of the nodes, which each has at the
/// same place of its memory. Afterwards this member's block is there. Each block crosses the network once.
Result<void> reduce_scatter(const Members& members, const Reduction& reduction, std::byte* blocks, std::size_t size);
Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive);

}  // namespace shmem::on_nodes
