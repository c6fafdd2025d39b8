// SPDX-License-Identifier: Apache-2.0
// A team of libshmem, as the operator uses it.
#pragma once

#include <memory>

#include "kv/operator/operator_team.hpp"
#include "shmem/runtime/runtime.hpp"
#include "shmem/team/team.hpp"

namespace shmem::api {

/// Runtime and team outlive it.
std::unique_ptr<kv::OperatorTeam> operator_team(Runtime& runtime, Team& team);

}  // namespace shmem::api
