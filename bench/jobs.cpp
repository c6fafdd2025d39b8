// SPDX-License-Identifier: Apache-2.0
#include "bench/jobs.hpp"

#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "bench/child.hpp"
#include "bench/conductor.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kCompilation{120};
constexpr std::chrono::seconds kLimit{180};

}  // namespace

/// A file of zeroes for the Score of a job.
std::string new_score(const Folder& folder) {
  std::string file = folder.file("score");
  std::filesystem::remove(file);
  std::ofstream(file).close();
  std::filesystem::resize_file(file, sizeof(Score));
  return file;
}

int own_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  return CPU_COUNT(&allowed);
}

double load_of_machine() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::vector<Series> run_ours(const Folder& folder, const std::string& worker, int pes,
                             const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> command{
      sibling_program("oshrun"), "-n", std::to_string(pes), "--gba", "off", sibling_program(worker), new_score(folder)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return read_series(run(command, environment, kLimit));
}

std::vector<Series> run_by_mpirun(const Folder& folder, const std::string& program, int pes,
                                  const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment, const Place& place) {
  std::vector<std::string> command = place.before;
  // The worker binds itself.
  command.insert(command.end(), {"/usr/bin/env", "mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to",
                                 "none", "-np", std::to_string(pes)});
  if (!place.hosts.empty()) command.insert(command.end(), {"--host", place.hosts});
  command.insert(command.end(), {program, new_score(folder)});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return read_series(bench::run(command, environment, kLimit));
}

OpenMpiProgram::OpenMpiProgram(const Folder& folder, const char* compiler, const char* macro,
                               const std::vector<std::string>& sources)
    : folder_(folder), program_(folder.file(sources.front() + macro)) {
  const std::string root = BENCH_SOURCE_ROOT;
  std::vector<std::string> command{
      "/usr/bin/env", compiler, "-std=c++20", "-O2", "-I" + root, std::string("-D") + macro, "-o", program_};
  for (const std::string& source : sources) {
    command.push_back(root + "/bench/" + source + ".cpp");
  }
  bench::run(command, {}, kCompilation);
}

std::vector<Series> OpenMpiProgram::run(int pes, const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment, const Place& place) const {
  // Debian's crashes at the end without that variable.
  std::vector<std::string> all{"OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"};
  all.insert(all.end(), environment.begin(), environment.end());
  return run_by_mpirun(folder_, program_, pes, arguments, all, place);
}

std::vector<Series> measure_ours(const Folder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment) {
  return run_ours(folder, "barrier_worker", pes, names, environment);
}

namespace {

std::vector<std::string> barrier_sources() {
  return {"barrier_worker", "conductor", "cpus", "points", "round_trip"};
}

}  // namespace

OpenMpi::OpenMpi(const Folder& folder)
    : mpi_(folder, "mpic++", "BENCH_OPENMPI_MPI", barrier_sources()),
      shmem_(folder, "shmemc++", "BENCH_OPENMPI_SHMEM", barrier_sources()) {}

std::vector<Series> OpenMpi::measure(int pes) const {
  auto all = mpi_.run(pes, {"MPI_Barrier (Open MPI)"});
  const auto more = shmem_.run(pes, {"shmem_barrier_all (Open MPI)"});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace bench
