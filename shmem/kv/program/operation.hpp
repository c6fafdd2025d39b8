// SPDX-License-Identifier: Apache-2.0
// A plan, and libshmem's operator that carries it out.
#pragma once

#include <memory>
#include <vector>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/program/caches.hpp"
#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"
#include "shmem/result.hpp"
#include "shmemx.h"

namespace kv_program {

/// Of one round, the same on all PEs.
struct RoundPlan {
  std::vector<shmem::kv::Move> moves;
  shmem::kv::PairPlan pairs{};  // the same moves, where pairs plan and copy; else empty
  std::int64_t spared = 0;      // blocks that are not sent as the receiver has them
  Load before{}, after{};
};

/// Made and ended collectively.
class Operation {
 public:
  /// Error: it cannot be made; on all PEs.
  static shmem::Result<std::unique_ptr<Operation>> create(const Options& options, const Caches& caches);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  /// What the next shuffles do. Error: libshmem does not take the plan; the shuffles fail then, on all PEs.
  shmem::Result<void> prepare(const RoundPlan& plan);
  /// Collective.
  shmem::Result<void> shuffle() { return run(plan_); }
  /// Collective: all that a shuffle does but for the blocks.
  shmem::Result<void> shuffle_nothing() { return run(nothing_); }

 private:
  using Plan = std::unique_ptr<shmemx_kv_plan_t, decltype(&shmemx_kv_plan_destroy)>;

  Operation(const Caches& caches, bool clears, shmemx_kv_op_t* operation)
      : caches_(caches), clears_(clears), operation_(operation) {}
  shmem::Result<void> run(const Plan& plan);

  const Caches& caches_;
  bool clears_;
  shmemx_kv_op_t* operation_;
  Plan plan_{nullptr, shmemx_kv_plan_destroy};
  Plan nothing_{nullptr, shmemx_kv_plan_destroy};
};

}  // namespace kv_program
