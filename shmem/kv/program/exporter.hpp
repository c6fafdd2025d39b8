// SPDX-License-Identifier: Apache-2.0
// Writes a round of the trace as the files of Ascend SHMEM's example, so that its program can do the same.
#pragma once

#include <optional>

#include "shmem/kv/program/operation.hpp"
#include "shmem/kv/program/reference_caches.hpp"

namespace kv_program {

/// Does nothing if no folder is named. Its calls are collective.
class Exporter {
 public:
  Exporter(const Options& options, const Caches& caches, Agreement& agreement);

  /// The caches as they are, the plan's tables, and what will come of it.
  Outcome before(const RoundPlan& plan);
  Outcome after();

 private:
  const Caches& caches_;
  Agreement& agreement_;
  std::optional<ReferenceFolder> folder_;
};

}  // namespace kv_program
