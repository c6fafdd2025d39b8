// SPDX-License-Identifier: Apache-2.0
// The shuffles themselves, and the time they take.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "shmem/kv/program/copy_threads.hpp"
#include "shmem/kv/program/operation.hpp"

namespace kv_program {

/// Made and ended collectively.
class Rounds {
 public:
  /// Error: the operator cannot be made; on all PEs.
  static shmem::Result<std::unique_ptr<Rounds>> create(const Options& options, const Caches& caches);

  /// Collective: does what the plan says, as often as the options say, from barrier to barrier; then the same without
  /// blocks; and then the same number of bytes with memcpy, each PE within its own memory.
  shmem::Result<RoundResult> run(const RoundPlan& plan);

 private:
  Rounds(const Options& options, const Caches& caches, std::unique_ptr<Operation> operation)
      : options_(options), caches_(caches), operation_(std::move(operation)), threads_(options.cores) {}

  shmem::Result<void> repeat(shmem::Result<void> (Operation::*shuffle)());
  /// As many bytes as are moved, of all PEs together, by the PEs whose cores move them.
  [[nodiscard]] std::vector<std::span<const std::byte>> parts_to_copy(const RoundPlan& plan) const;
  void copy(const std::vector<std::span<const std::byte>>& parts);

  const Options& options_;
  const Caches& caches_;
  std::unique_ptr<Operation> operation_;
  CopyThreads threads_;
  std::vector<std::byte> elsewhere_;  // what memcpy copies to; as large as it has had to be
};

}  // namespace kv_program
