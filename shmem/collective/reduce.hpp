// SPDX-License-Identifier: Apache-2.0
// Reductions and scans (OpenSHMEM 1.6, section 9.10).
#pragma once

#include "shmem/collective/members.hpp"

namespace shmem {

/// Element i of every `dest` becomes the combination of all members' elements i, in the order of their numbers, or node
/// by node: the same bits on all members. `dest` is `source`, or they do not overlap.
Result<void> reduce(const Members& members, const Reduction& reduction, void* dest, const void* source,
                    std::size_t count);

/// The same for members 0 to this one (`inclusive`), or to the one before it; zeros if there are none.
Result<void> scan(const Members& members, const Reduction& reduction, void* dest, const void* source, std::size_t count,
                  bool inclusive);

}  // namespace shmem
