// SPDX-License-Identifier: Apache-2.0
// Collective calls of teams on several nodes: the first member of each node works for it, with the memory of all there,
// and meets the others by messages. Semantics as in move.hpp and reduce.hpp. REQUIRES: members.span.
#pragma once

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"

namespace shmem::on_nodes {

Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root);
Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size);
Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const std::function<Result<void>(std::size_t total)>& check);
/// Not blocks that are long and have gaps: they go faster from each member to each.
bool takes_alltoall(const Strided& block);
/// REQUIRES: takes_alltoall(block).
Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block);

/// Of each node in the order of its members, then of the nodes: the same bits on all members.
Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count);
Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive);

}  // namespace shmem::on_nodes
