// SPDX-License-Identifier: Apache-2.0
// Jobs of processes that measure (barrier_worker.cpp, rma_worker.cpp): ours, and of Open MPI.
#pragma once

#include <string>
#include <vector>

#include "bench/folder.hpp"
#include "bench/points.hpp"

namespace bench {

/// Processors that this process may use.
int own_processors();
/// Processes that wanted one in the last minute.
double load_of_machine();

/// The file that the workers of one job get.
std::string new_score(const Folder& folder);

/// Where the processes of a job go, if not to this machine.
struct Place {
  std::vector<std::string> before{};  // a command line that runs the one behind it where jobs are started
  std::string hosts{};                // that mpirun is to use, as its option --host has them
};

/// What a worker prints. It is started with the file of a Score and `arguments`; `environment` is on top of this
/// process's own. Throws std::runtime_error if the job cannot be started or fails.
std::vector<Series> run_ours(const Folder& folder, const std::string& worker, int pes,
                             const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment = {});

/// The same by Open MPI's mpirun; `program` is the worker's file.
std::vector<Series> run_by_mpirun(const Folder& folder, const std::string& program, int pes,
                                  const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment, const Place& place = {});

/// A worker built by a compiler of Open MPI, with `macro` defined. Throws std::runtime_error if that is not to be had.
class OpenMpiProgram {
 public:
  OpenMpiProgram(const Folder& folder, const char* compiler, const char* macro,
                 const std::vector<std::string>& sources);
  [[nodiscard]] std::vector<Series> run(int pes, const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment = {},
                                        const Place& place = {}) const;

 private:
  const Folder& folder_;
  std::string program_;
};

/// Barriers: each of `names` as a series, in that order; for our own they are algorithms.
std::vector<Series> measure_ours(const Folder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment = {});

/// Barriers of Open MPI's libraries.
class OpenMpi {
 public:
  explicit OpenMpi(const Folder& folder);
  /// MPI_Barrier, and shmem_barrier_all of its OpenSHMEM.
  [[nodiscard]] std::vector<Series> measure(int pes) const;

 private:
  OpenMpiProgram mpi_;
  OpenMpiProgram shmem_;
};

}  // namespace bench
