// SPDX-License-Identifier: Apache-2.0
// What is done about a window: a pure function, so that all PEs do the same.
#pragma once

#include "shmem/kv/program/operation.hpp"
#include "shmem/kv/window.hpp"

namespace kv_program {

/// Error: those of the planners.
shmem::Result<RoundPlan> plan_round(const Options& options, shmem::kv::TraceWindow window);

}  // namespace kv_program
