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
  [[nodiscard]] bool there() const { return lengths_.get() != nullptr; }

  /// Opens the trace, on PE 0; elsewhere there is nothing to do. Error: it cannot be read, or a line of it is wrong.
  shmem::Result<void> open();
  /// Of PE 0.
  [[nodiscard]] const shmem::kv::WindowDealer& dealer() const { return *dealer_; }

  /// Collective: the plan for the next window.
  shmem::Result<RoundPlan> next();

 private:
  /// What a window cannot exceed: half a cache of sequences of one block, for each PE.
  [[nodiscard]] std::size_t row_length() const { return 1 + static_cast<std::size_t>(geometry_.blocks / 2); }
  shmem::Result<void> put_window();
  [[nodiscard]] shmem::kv::Lengths get_window() const;

  const Options& options_;
  shmem::kv::Geometry geometry_;
  int pes_;
  Agreement agreement_;
  SymmetricMemory lengths_;  // of PE 0: int64 [pe][row_length()], how many sequences and then their tokens
  std::optional<shmem::kv::WindowDealer> dealer_;
};

}  // namespace kv_program
