// SPDX-License-Identifier: Apache-2.0
// Jobs of processes that measure barriers (barrier_worker.cpp): ours, and of Open MPI.
#pragma once

#include <string>
#include <vector>

#include "bench/folder.hpp"
#include "bench/points.hpp"

namespace bench {

/// Processors that this process may use.
int own_processors();

/// Each of `names` as a series, in that order; for our own they are algorithms. All throw std::runtime_error if the job
/// cannot be started or fails. `environment` is on top of this process's own.
std::vector<Series> measure_ours(const Folder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment = {});

/// Open MPI's libraries: programs that its compilers make of the worker.
class OpenMpi {
 public:
  explicit OpenMpi(const Folder& folder);
  /// MPI_Barrier, and shmem_barrier_all of its OpenSHMEM.
  [[nodiscard]] std::vector<Series> measure(int pes) const;

 private:
  [[nodiscard]] std::vector<Series> measure(const std::string& program, const char* name, int pes) const;

  const Folder& folder_;
};

}  // namespace bench
