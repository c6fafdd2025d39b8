// SPDX-License-Identifier: Apache-2.0
// A team as kv_shuffle sees it.
#pragma once

#include "shmem/context.hpp"
#include "shmem/kv/site.hpp"
#include "shmem/team/team.hpp"

namespace shmem::api {

/// Context and team outlive it.
kv::Site site_of(Context& context, Team& team);

}  // namespace shmem::api
