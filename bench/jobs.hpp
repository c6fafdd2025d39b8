// SPDX-License-Identifier: Apache-2.0
// Programs that benchmarks start: jobs of processes that measure (the *_worker.cpp), of libshmem and of Open MPI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/temp_folder.hpp"
#include "bench/measure.hpp"
#include "tools/chart/chart.hpp"

namespace bench {

/// The time that a program gets to end by itself, since mpirun and oshrun must end their processes.
constexpr base::Seconds kGrace{5};

/// A program in the folder of this one.
std::string sibling_program(const std::string& name);
/// A worker: next to this program in the build tree, in a folder of its own where it is installed.
std::string worker_program(const std::string& name);

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

/// A file of zeroes for the ControlBlock of a job.
std::string new_control_file(const base::TempFolder& folder);

/// Where the processes of a job run, if not on this machine.
struct Place {
  std::vector<std::string> before{};  // a command that runs the command after it in the place where jobs are started
  std::string hosts{};                // for mpirun's option --host
  bool binds = false;                 // whether mpirun binds processes as it does by default
};

/// Runs a worker with the file of a ControlBlock and `arguments`, and returns the series that it prints. Adds
/// `environment` to this process's. Throws std::runtime_error if the job cannot be started or fails.
std::vector<Series> run_ours(const base::TempFolder& folder, const std::string& worker, int pes,
                             const std::vector<std::string>& arguments,
                             const std::vector<std::string>& environment = {});

/// The same by Open MPI's mpirun; `program` is the worker's file.
std::vector<Series> run_by_mpirun(const base::TempFolder& folder, const std::string& program, int pes,
                                  const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment, const Place& place = {});

/// A worker, bench/`worker`.cpp, built by a compiler of Open MPI with `macro` defined. Throws std::runtime_error if the
/// compiler is not available.
class OpenMpiProgram {
 public:
  OpenMpiProgram(const base::TempFolder& folder, const char* compiler, const char* macro, const std::string& worker);
  [[nodiscard]] std::vector<Series> run(int pes, const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment = {},
                                        const Place& place = {}) const;

 private:
  const base::TempFolder& folder_;
  std::string program_;
};

/// Builds such a program. Prints a message and returns null if Open MPI is not installed.
std::unique_ptr<OpenMpiProgram> openmpi_program(const base::TempFolder& folder, const char* compiler, const char* macro,
                                                const std::string& worker);

/// Throws std::runtime_error.
void write_svg(const std::string& file, const std::vector<chart::Plot>& plots);

/// A chart of lines over sizes as SVG, with logarithmic axes.
class Picture {
 public:
  /// Adds a point to the line `name`, which its first point creates.
  void add(const std::string& name, double x, double y, bool dashed = false);
  /// Throws std::runtime_error.
  void write(const std::string& file, const std::string& title, const char* x_name, const char* y_name) const;

 private:
  std::vector<chart::Series> lines_;
};

/// How often barrier_worker measures each barrier.
inline constexpr const char* kBarrierRepeats = "9";

/// Measures barriers: a series for each of `names`, which are algorithms.
std::vector<Series> measure_ours(const base::TempFolder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment = {});

}  // namespace bench
