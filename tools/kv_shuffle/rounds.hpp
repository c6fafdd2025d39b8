// SPDX-License-Identifier: Apache-2.0
// Executes the plan of a round, and measures it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "tools/kv_shuffle/round_planner.hpp"

namespace kv_program {

/// libshmem's operator, and the plans that it executes. Construction and destruction are collective.
class Operation {
 public:
  /// The Error is the same on all PEs.
  static Result<std::unique_ptr<Operation>> create(const Options& options, const Caches& caches);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  /// Selects what the next shuffles do. The plan outlives them. Error: libshmem refuses the plan; then the shuffles
  /// fail on all PEs.
  Result<void> prepare(const RoundPlan& plan);
  /// Collective.
  Result<void> shuffle() { return run(plan_); }
  /// Collective: a shuffle without blocks.
  Result<void> shuffle_nothing() { return run(nothing_.get()); }

 private:
  Operation(const Caches& caches, int mode, shmemx_kv_op_t* operation)
      : cache_(caches.description()), mode_(mode), operation_(operation) {}
  Result<void> run(const shmemx_kv_plan_t* plan);

  shmemx_kv_cache_t cache_;
  int mode_;
  shmemx_kv_op_t* operation_;
  const shmemx_kv_plan_t* plan_ = nullptr;
  PlanHandle pairs_, nothing_;
};

/// Threads for the comparison with memcpy; the caller of run() is one of them. Used by one thread.
class CopyThreads {
 public:
  using Work = std::function<void(int thread, int threads)>;

  explicit CopyThreads(int threads);
  CopyThreads(const CopyThreads&) = delete;
  CopyThreads& operator=(const CopyThreads&) = delete;
  ~CopyThreads();

  /// Returns when all threads have done their part. The work does not throw.
  void run(const Work& work);

 private:
  void serve(int thread);

  int count_;
  std::mutex mutex_;
  std::condition_variable started_, ended_;
  const Work* work_ = nullptr;  // nullptr with a new run: end
  unsigned runs_ = 0;
  int working_ = 0;
  std::vector<std::thread> threads_;
};

/// Construction and destruction are collective.
class Rounds {
 public:
  /// Error, the same on all PEs: that of Operation::create().
  static Result<std::unique_ptr<Rounds>> create(const Options& options, const Caches& caches);

  /// Collective, from barrier to barrier: executes the plan --repeats times; then as many shuffles without blocks; then
  /// copies the same number of bytes with memcpy, each PE within its own memory.
  Result<RoundResult> run(const RoundPlan& plan);

 private:
  Rounds(const Options& options, const Caches& caches, std::unique_ptr<Operation> operation)
      : options_(options), caches_(caches), operation_(std::move(operation)), threads_(options.cores) {}

  Result<void> repeat(Result<void> (Operation::*shuffle)());
  /// The parts that this PE's cores copy in the shuffle.
  [[nodiscard]] std::vector<std::span<const std::byte>> parts_to_copy(const RoundPlan& plan) const;
  void copy(const std::vector<std::span<const std::byte>>& parts);

  const Options& options_;
  const Caches& caches_;
  std::unique_ptr<Operation> operation_;
  CopyThreads threads_;
  std::vector<std::byte> copies_;  // the destination of memcpy; grows as needed
};

}  // namespace kv_program
