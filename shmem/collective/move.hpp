// SPDX-License-Identifier: Apache-2.0
// Collectives that move data (OpenSHMEM 1.6, section 9.11). Sizes in bytes; addresses have been checked.
#pragma once

#include "shmem/collective/members.hpp"

namespace shmem {

/// `source` of member `root` to everybody's `dest`, on the root only where `root_too`.
Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root,
                       bool root_too);

/// Everybody's `source` one behind the other; each has as much.
Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size);

/// The same where each has as much as it says. `check(total)` is asked before anything is written to `dest`.
Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size,
                     const std::function<Result<void>(std::size_t total)>& check);

/// Elements whose beginnings are so many bytes apart, here and there.
struct Strided {
  std::size_t to_step, from_step, element, count;
};

/// Block i of member j becomes block j of member i: a block is `count` elements, and blocks follow each other.
Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block);

}  // namespace shmem
