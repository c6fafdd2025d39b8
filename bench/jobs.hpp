// SPDX-License-Identifier: Apache-2.0
// Programs that benchmarks start: jobs of bench_worker, of libshmem and of Open MPI, ucx_perftest, and others.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/temp_folder.hpp"
#include "bench/measure.hpp"

namespace bench {

/// The time that a program gets to end by itself, since mpirun and oshrun must end their processes.
constexpr base::Seconds kGrace{5};

/// A program in the folder of this one.
std::string sibling_program(const std::string& name);
/// bench_worker: next to this program in the build tree, in a folder of its own where it is installed.
std::string worker_program();

/// Runs a program and returns its standard output. Throws std::runtime_error, with the end of the output, if it fails
/// or does not end within `limit`.
std::string output_of(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                      base::Seconds limit);

/// Processors that this process may use.
int own_processors();
/// The name of the processors of this machine.
std::string processor_name();
/// The load average of the last minute.
double load_of_machine();

/// A job of bench_worker.
struct Job {
  int pes = 2;
  /// After the worker's FILE: the part, the number of measurements, and what the part takes.
  std::vector<std::string> arguments{};
  std::vector<std::string> environment{};  // added to this process's
  /// A command that the number of PEs and the program follow; none: oshrun, or mpirun without binding.
  std::vector<std::string> launch{};
  /// What oshrun's option --gba takes.
  std::string gba{"off"};
};

/// An empty file in `folder` for the Workers of one job.
std::string new_worker_file(const base::TempFolder& folder);

/// Runs the job and returns the series that it prints. Throws std::runtime_error if it cannot be started or
/// fails.
std::vector<Series> run_ours(const Job& job);

/// Where the processes of a job run, if not on this machine.
struct JobLocation {
  std::vector<std::string> before{};  // a command that runs the command after it in the place where jobs are started
  std::string hosts{};                // for mpirun's option --host
};

/// bench_worker built by a compiler of Open MPI, with the parts of these files of bench/.
class OpenMpiWorker {
 public:
  enum class Library { kShmem, kMpi };
  /// Throws std::runtime_error if the compiler is not available.
  OpenMpiWorker(Library library, const std::vector<std::string>& files);
  /// As run_ours().
  [[nodiscard]] std::vector<Series> run(const Job& job, const JobLocation& place = {}) const;

 private:
  base::TempFolder folder_;
};

/// Open MPI, compared with libshmem in the same run: skipped if it is not installed; a job that fails ends nothing.
class OpenMpi {
 public:
  /// Prints a message if it is not installed. Not `wanted`: skipped without a message.
  OpenMpi(OpenMpiWorker::Library library, const std::vector<std::string>& files, bool wanted = true);

  [[nodiscard]] bool installed() const { return worker_.has_value(); }
  /// REQUIRES: it is installed.
  [[nodiscard]] const OpenMpiWorker& worker() const { return worker_.value(); }
  /// None, after a message, if the job fails; none if it is not installed.
  std::vector<Series> run(const Job& job);
  /// False if a job has failed.
  [[nodiscard]] bool good() const { return good_; }

 private:
  std::optional<OpenMpiWorker> worker_;
  bool good_ = true;
};

// Measurements of UCX by its own program ucx_perftest.

/// Whether ucx_perftest can be started (Debian: package ucx-utils). Prints a message if not.
bool has_ucx();

/// The processes between which it measures. By default two on this machine, through shared memory, without a network
/// and without copies by the kernel.
struct UcxPlace {
  std::vector<std::string> server{};  // commands that run the one after them in the right place
  std::vector<std::string> client{};
  std::string address{"127.0.0.1"};  // the server's
  std::vector<std::string> environment{"UCX_TLS=posix,sysv,self", "UCX_LOG_LEVEL=fatal"};
};

/// The average nanoseconds of `count` consecutive calls, `outstanding` of them at once. `test` is one of ucx_perftest's
/// tests. Throws std::runtime_error if it fails.
double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place = {}, int outstanding = 1);
/// The best of several runs.
double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus);

/// How often barriers are measured in a job.
inline constexpr const char* kBarrierRepeats = "9";
/// The arguments of a job that measures barriers of these names, which are algorithms of libshmem.
std::vector<std::string> barrier_arguments(const std::vector<std::string>& names);

}  // namespace bench
