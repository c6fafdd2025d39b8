// SPDX-License-Identifier: Apache-2.0
// A PE whose process goes on without the others, as a member of a group does that destroys it.
#pragma once

#include "shmem/layout/job.hpp"

namespace shmem {

/// To the others this PE is from now on as good as dead (is_dead()), but described as one that has left. What it has
/// stored before counts.
void leave(const Job& job);

/// That PE has called leave(). One load.
bool has_left(const Job& job, int pe);

}  // namespace shmem
