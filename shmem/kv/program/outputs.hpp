// SPDX-License-Identifier: Apache-2.0
// The files that --json and --report write.
#pragma once

#include <fstream>

#include "shmem/kv/program/options.hpp"
#include "shmem/kv/program/results.hpp"
#include "shmem/result.hpp"

namespace kv_program {

/// Opened before the work, so that a name that cannot be written costs nothing; used on PE 0 only.
class Outputs {
 public:
  shmem::Result<void> open(const Options& options);
  /// JSON goes to standard output where no file is named.
  shmem::Result<void> write(const Options& options, const Results& results);

 private:
  std::ofstream json_, report_;
};

}  // namespace kv_program
