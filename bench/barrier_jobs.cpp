// SPDX-License-Identifier: Apache-2.0
#include "bench/barrier_jobs.hpp"

#include <sched.h>

#include <filesystem>
#include <fstream>

#include "bench/child.hpp"
#include "bench/conductor.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kCompilation{120};
constexpr std::chrono::seconds kLimit{180};

/// A file of zeroes for the Score of a job.
std::string new_score(const Folder& folder) {
  std::string file = folder.file("score");
  std::filesystem::remove(file);
  std::ofstream(file).close();
  std::filesystem::resize_file(file, sizeof(Score));
  return file;
}

void compile(const char* compiler, const char* library, const std::string& program) {
  const std::string root = BENCH_SOURCE_ROOT;
  const std::string include = "-I" + root;
  std::vector<std::string> command{"/usr/bin/env", compiler, "-std=c++20", "-O2", include, library, "-o", program};
  for (const char* source : {"barrier_worker", "conductor", "cpus", "points", "round_trip"}) {
    command.push_back(root + "/bench/" + source + ".cpp");
  }
  run(command, {}, kCompilation);
}

}  // namespace

int own_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  return CPU_COUNT(&allowed);
}

std::vector<Series> measure_ours(const Folder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> command{
      sibling_program("oshrun"), "-n", std::to_string(pes), "--gba", "off", sibling_program("barrier_worker"),
      new_score(folder)};
  command.insert(command.end(), names.begin(), names.end());
  return read_series(run(command, environment, kLimit));
}

OpenMpi::OpenMpi(const Folder& folder) : folder_(folder) {
  compile("mpic++", "-DBENCH_OPENMPI_MPI", folder.file("mpi_worker"));
  compile("shmemc++", "-DBENCH_OPENMPI_SHMEM", folder.file("shmem_worker"));
}

std::vector<Series> OpenMpi::measure(const std::string& program, const char* name, int pes) const {
  // The worker binds itself, as ours does. Debian's crashes at the end without that variable.
  return read_series(run({"/usr/bin/env", "mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
                          "-np", std::to_string(pes), folder_.file(program), new_score(folder_), name},
                         {"OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"}, kLimit));
}

std::vector<Series> OpenMpi::measure(int pes) const {
  auto all = measure("mpi_worker", "MPI_Barrier (Open MPI)", pes);
  const auto more = measure("shmem_worker", "shmem_barrier_all (Open MPI)", pes);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace bench
