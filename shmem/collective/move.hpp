// SPDX-License-Identifier: Apache-2.0
// Collectives that move data (OpenSHMEM 1.6, section 9.10). Sizes in bytes; addresses have been checked.
#pragma once

#include "shmem/collective/members.hpp"

namespace shmem {

/// Copies `source` of member `root` to every `dest`, the root's only with `root_too`.
Result<void> broadcast(const Members& members, void* dest, const void* source, std::size_t size, int root,
                       bool root_too);

/// Concatenates every member's `source`; all have the same size.
Result<void> fcollect(const Members& members, void* dest, const void* source, std::size_t size);

/// Called with the total size of a collect; an Error refuses it.
class CheckTotal {
 public:
  CheckTotal(const CheckTotal&) = delete;
  CheckTotal& operator=(const CheckTotal&) = delete;
  virtual Result<void> operator()(std::size_t total) const = 0;

 protected:
  CheckTotal() = default;
  ~CheckTotal() = default;
};

/// The same with a size per member. check(total) is called before anything is written to `dest`.
Result<void> collect(const Members& members, void* dest, const void* source, std::size_t size, const CheckTotal& check);

/// Elements with the distances between their starts, at the destination and at the source.
struct Strided {
  std::size_t to_step, from_step, element, count;
};

/// Block i of member j becomes block j of member i: a block is `count` elements, and blocks are contiguous.
Result<void> alltoall(const Members& members, void* dest, const void* source, const Strided& block);

}  // namespace shmem
