// SPDX-License-Identifier: Apache-2.0
// Small data of many members in several calls of the eager channel (team/neighbour_levels.hpp): the leader of each
// group takes what its group gives, and gives that in the next call. So a member reads few lines that other processors
// have just written, instead of one or more of each member, unless the result itself consists of more.
#pragma once

#include "shmem/collective/move.hpp"

namespace shmem::by_neighbours {

/// Whether fcollect() can be used, and is worth its calls; the same on all members. REQUIRES: eager; there are levels.
bool takes_fcollect(const Members& members, std::size_t size);
Result<void> fcollect(const Members& members, std::byte* dest, const void* source, std::size_t size);

/// REQUIRES: eager; there are levels. A group's leader passes on the lengths, and the contents if all of its group are
/// eager and fit; other contents are read from their members when all lengths are known.
Result<void> collect(const Members& members, std::byte* dest, const void* source, std::size_t size,
                     const CheckTotal& check);

}  // namespace shmem::by_neighbours
