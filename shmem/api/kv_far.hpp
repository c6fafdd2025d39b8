// SPDX-License-Identifier: Apache-2.0
// What kv_shuffle asks of the network, for a team.
#pragma once

#include <memory>

#include "shmem/job.hpp"
#include "shmem/kv/far.hpp"
#include "shmem/team/team.hpp"

namespace shmem::api {

/// nullptr: all members are on this node. Job and team outlive it.
std::shared_ptr<kv::Far> make_far(const Job& job, Team& team);

}  // namespace shmem::api
