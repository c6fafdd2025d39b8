// SPDX-License-Identifier: Apache-2.0
// The shuffles themselves, and the time they take.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shmem/kv/planner.hpp"
#include "shmem/kv/program/caches.hpp"
#include "shmem/kv/program/copy_threads.hpp"
#include "shmem/result.hpp"

namespace kv_program {

/// What all PEs together have moved, and how fast, seen from this PE.
struct Totals {
  std::int64_t blocks = 0;
  std::int64_t bytes = 0;  // K and V
  // Bytes per second of each round that has moved some.
  std::vector<double> shuffling, copying;
};

/// Made and ended collectively.
class Rounds {
 public:
  /// Error: the operator cannot be made; on all PEs.
  static shmem::Result<std::unique_ptr<Rounds>> create(const Options& options, const Caches& caches);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds();

  /// Collective: does what the plan says, as often as the options say, from barrier to barrier; and then the same
  /// number of bytes with memcpy within each PE that has sent.
  shmem::Result<void> run(const shmem::kv::PairPlan& plan);

  [[nodiscard]] const Totals& totals() const { return totals_; }

 private:
  Rounds(const Options& options, const Caches& caches, shmemx_kv_shuffle_t* operation)
      : options_(options), caches_(caches), operation_(operation), threads_(options.cores) {}

  shmem::Result<void> shuffle(const shmem::kv::PairPlan& plan);
  void copy(const shmem::kv::PePlan& mine);

  const Options& options_;
  const Caches& caches_;
  shmemx_kv_shuffle_t* operation_;
  CopyThreads threads_;
  std::vector<std::byte> elsewhere_;  // what memcpy copies to; as large as it has had to be
  Totals totals_;
};

}  // namespace kv_program
