// SPDX-License-Identifier: Apache-2.0
// What a plan of the C interface holds.
#pragma once

#include <string>
#include <variant>

#include "shmem/kv/placement.hpp"
#include "shmem/kv/plan.hpp"
#include "shmem/kv/table_plan.hpp"

/// Owned by the application, between its making and destroy. Not changed in between.
struct shmemx_kv_plan {
  std::variant<shmem::kv::MovePlan, shmem::kv::TablePlan> content;
  shmem::kv::Placements placements{};  // of a plan that the library has made
};

namespace shmem::api {

// What is wrong with a call, printed and kept; for the call to return.
int kv_refuse(const char* call, const std::string& problem);
int kv_fail(const char* call, const Error& error);
int kv_out_of_memory(const char* call);

}  // namespace shmem::api
