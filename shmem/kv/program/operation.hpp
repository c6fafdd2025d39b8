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
  shmem::kv::PairPlan pairs;
  std::vector<shmem::kv::Move> moves;
  Load before, after;
};

/// Made and ended collectively.
class Operation {
 public:
  /// Error: it cannot be made; on all PEs.
  static shmem::Result<std::unique_ptr<Operation>> create(const Options& options, const Caches& caches);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  /// Collective.
  shmem::Result<void> shuffle(const RoundPlan& plan);
  /// Collective: all that a shuffle does but for the blocks.
  shmem::Result<void> shuffle_nothing(const RoundPlan& plan);

 private:
  Operation(const Caches& caches, shmemx_kv_op_t* operation) : caches_(caches), operation_(operation) {}
  shmem::Result<void> run(const RoundPlan& plan, bool is_empty);

  const Caches& caches_;
  shmemx_kv_op_t* operation_;
};

}  // namespace kv_program
