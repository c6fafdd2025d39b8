// SPDX-License-Identifier: Apache-2.0
// What a plan of the C interface holds.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "shmem/kv/plan.hpp"
#include "shmem/kv/table_plan.hpp"

/// Owned by the application, between its making and destroy. Not changed in between.
struct shmemx_kv_plan {
  std::variant<shmem::kv::MovePlan, shmem::kv::TablePlan> content;
  /// Of a plan that the library has made: where each sequence lies afterwards.
  struct Placement {
    std::int64_t pe;
    std::vector<std::int64_t> blocks;
  };
  std::vector<Placement> placements{};
};
