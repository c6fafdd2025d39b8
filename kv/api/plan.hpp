// SPDX-License-Identifier: Apache-2.0
// A plan of the C interface.
#pragma once

#include <string>
#include <variant>

#include "kv/operator/pair_plan.hpp"
#include "kv/operator/plan.hpp"
#include "kv/planner/placement.hpp"

/// Owned by the application, and constant until destroyed.
struct shmemx_kv_plan {
  std::variant<shmem::kv::MovePlan, shmem::kv::PairPlan> content;
  shmem::kv::Placements placements{};  // of a plan of shmemx_kv_plan_balance
};

namespace shmem::api {

// Print and record the error of a call, and give the value to return.
int kv_refuse(const char* call, const std::string& problem);
int kv_fail(const char* call, const Error& error);
int kv_out_of_memory(const char* call);

}  // namespace shmem::api
