// SPDX-License-Identifier: Apache-2.0
// The plan of each round, the same on all PEs: PE 0 reads the trace, everybody plans.
#pragma once

#include <optional>

#include "shmem/kv/program/operation.hpp"
#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/world.hpp"
#include "shmem/kv/window.hpp"

namespace kv_program {

/// Made and ended collectively.
class Windows {
 public:
  explicit Windows(const Options& options);
  [[nodiscard]] bool there() const { return words_.get() != nullptr; }

  /// Opens the trace, on PE 0; elsewhere there is nothing to do. Error: it cannot be read, or a line of it is wrong.
  shmem::Result<void> open();
  /// Of PE 0.
  [[nodiscard]] const shmem::kv::WindowDealer& dealer() const { return *dealer_; }

  /// Collective: the plan for the next window.
  shmem::Result<RoundPlan> next();
  /// The share of the trace's requests that windows have held: 1 or more at its end.
  [[nodiscard]] double share_of_trace() const { return share_; }

 private:
  /// What a window cannot exceed: for each PE half a cache of sequences of one block, each with a hash.
  [[nodiscard]] std::size_t most_words() const;
  shmem::Result<void> put_window();
  shmem::kv::TraceWindow get_window();

  const Options& options_;
  int pes_;
  double share_ = 0;
  Agreement agreement_;
  SymmetricMemory words_;  // of PE 0: requests dealt and in all, and for each PE the number of its sequences, and these
  std::optional<shmem::kv::WindowDealer> dealer_;
};

}  // namespace kv_program
