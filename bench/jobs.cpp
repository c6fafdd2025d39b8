// SPDX-License-Identifier: Apache-2.0
#include "bench/jobs.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/usable_processors.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kCompilation{120};
constexpr std::chrono::seconds kLimit{900};
constexpr const char* kWorker = "bench_worker";

/// Enough of a program's output to see the error.
std::string end_of(const std::string& output) {
  constexpr std::size_t kMost = 500;
  return output.size() <= kMost ? output : "..." + output.substr(output.size() - kMost);
}

/// Starts the job with `command` and the worker's file.
std::vector<Series> run(std::vector<std::string> command, const Job& job, const std::vector<std::string>& environment) {
  const base::TempFolder folder;
  command.push_back(new_worker_file(folder));
  command.insert(command.end(), job.arguments.begin(), job.arguments.end());
  return read_series(output_of(command, environment, kLimit));
}

}  // namespace

std::string sibling_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::string worker_program() {
  std::string built = sibling_program(kWorker);
  return std::filesystem::exists(built) ? built : sibling_program(fmt::format("{}/{}", BENCH_WORKER_FOLDER, kWorker));
}

std::string output_of(const std::vector<std::string>& arguments, const std::vector<std::string>& environment,
                      base::Seconds limit) {
  base::Process process(arguments, environment, {.output = base::Output::kStandardCollected, .grace = kGrace});
  const auto exit = process.wait(limit);
  std::string output = process.output();
  if (!exit) {
    throw std::runtime_error(fmt::format("{} has not ended within {:.0f} s; the end of its output:\n{}", arguments[0],
                                         limit.count(), end_of(output)));
  }
  if (!exit->clean()) {
    throw std::runtime_error(fmt::format("{} failed (code {}, signal {}); the end of its output:\n{}", arguments[0],
                                         exit->code, exit->signal, end_of(output)));
  }
  return output;
}

int own_processors() {
  return static_cast<int>(base::usable_processors());
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown processor";
}

double load_of_machine() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::string new_worker_file(const base::TempFolder& folder) {
  std::string file = folder.file("worker-file");
  std::ofstream(file, std::ios::trunc).close();
  return file;
}

std::vector<Series> run_ours(const Job& job) {
  std::vector<std::string> command = job.launch;
  if (command.empty()) {
    command = {sibling_program("oshrun"), "--gba", job.gba, "-n"};
  }
  command.insert(command.end(), {std::to_string(job.pes), worker_program()});
  return run(command, job, job.environment);
}

OpenMpiWorker::OpenMpiWorker(Library library, const std::vector<std::string>& files) {
  const std::string root = BENCH_SOURCE_ROOT;
  const bool mpi = library == Library::kMpi;
  std::vector<std::string> command{"/usr/bin/env",
                                   mpi ? "mpic++" : "oshc++",
                                   mpi ? "-DBENCH_OPENMPI_MPI" : "-DBENCH_OPENMPI_SHMEM",
                                   "-std=c++20",
                                   "-O2",
                                   "-I" + root,
                                   "-o",
                                   folder_.file(kWorker)};
  for (const auto& common : {"worker", "measure"}) {
    command.push_back(fmt::format("{}/bench/{}.cpp", root, common));
  }
  for (const std::string& file : files) {
    command.push_back(fmt::format("{}/bench/{}.cpp", root, file));
  }
  output_of(command, {}, kCompilation);
}

std::vector<Series> OpenMpiWorker::run(const Job& job, const JobLocation& place) const {
  std::vector<std::string> command = place.before;
  std::vector<std::string> launch = job.launch;
  if (launch.empty()) {  // most parts bind the processes
    launch = {"/usr/bin/env", "mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-np"};
  }
  command.insert(command.end(), launch.begin(), launch.end());
  command.push_back(std::to_string(job.pes));
  if (!place.hosts.empty()) {
    command.insert(command.end(), {"--host", place.hosts});
  }
  command.push_back(folder_.file(kWorker));
  // Without that variable, Debian's Open MPI crashes at the end.
  std::vector<std::string> environment{"OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"};
  environment.insert(environment.end(), job.environment.begin(), job.environment.end());
  return bench::run(command, job, environment);
}

OpenMpi::OpenMpi(OpenMpiWorker::Library library, const std::vector<std::string>& files, bool wanted) {
  try {
    if (wanted) {
      worker_.emplace(library, files);
    }
  } catch (const std::exception& error) {
    std::printf("Open MPI is skipped (packages openmpi-bin, libopenmpi-dev): %s\n", error.what());
  }
}

std::vector<Series> OpenMpi::run(const Job& job) {
  try {
    return worker_ ? worker_->run(job) : std::vector<Series>{};
  } catch (const std::exception& error) {
    std::printf("Open MPI with %d processes: %s\n", job.pes, error.what());
    good_ = false;
    return {};
  }
}

std::vector<std::string> barrier_arguments(const std::vector<std::string>& names) {
  std::vector<std::string> arguments{"barriers", kBarrierRepeats};
  arguments.insert(arguments.end(), names.begin(), names.end());
  return arguments;
}

namespace {

constexpr int kRuns = 3;
constexpr int kTries = 50;
constexpr std::chrono::milliseconds kBetweenTries{20};
constexpr std::chrono::seconds kUcxLimit{20};

std::vector<std::string> ucx_command(const std::vector<std::string>& before, int port, int cpu) {
  std::vector<std::string> line = before;
  line.insert(line.end(),
              {"/usr/bin/env", "ucx_perftest", "-p", std::to_string(port), "-c", std::to_string(cpu), "-f"});
  return line;
}

int next_port() {
  static int port = 20'000 + ::getpid() % 10'000;
  port = port < 60'000 ? port + 1 : 20'000;
  return port;
}

/// The average in microseconds is the third number of the last line.
double average_of(const std::string& output) {
  const auto end = output.find_last_not_of(" \n");
  const auto begin = output.rfind('\n', end);
  std::istringstream line(output.substr(begin == std::string::npos ? 0 : begin, end - begin + 1));
  double iterations = 0;
  double middle = 0;
  double average = 0;
  if (!(line >> iterations >> middle >> average)) {
    throw std::runtime_error("ucx_perftest printed no figures: " + output);
  }
  return average * 1e3;
}

}  // namespace

bool has_ucx() {
  // Its usage text; `env` prints an error if the program is not installed.
  const std::string usage = base::run({"/usr/bin/env", "ucx_perftest", "-h"}, {}, kUcxLimit).output;
  const bool found = usage.find("UCT only") != std::string::npos || usage.find("UCP only") != std::string::npos;
  if (!found) {
    std::printf("UCX is skipped (package ucx-utils)\n");
  }
  return found;
}

double measure_ucx_once(const std::string& test, std::size_t size, int count, const CpuPair& cpus,
                        const UcxPlace& place, int outstanding) {
  const int port = next_port();
  const base::Process server(ucx_command(place.server, port, cpus.second), place.environment,
                             {.output = base::Output::kDiscarded, .grace = kGrace});
  auto client = ucx_command(place.client, port, cpus.first);
  const auto warm_up = std::to_string(std::max(count / 10, 2));
  client.insert(client.end(), {"-t", test, "-s", std::to_string(size), "-n", std::to_string(count), "-w", warm_up, "-O",
                               std::to_string(outstanding), place.address});
  for (int i = 0;; ++i) {
    try {
      return average_of(output_of(client, place.environment, kUcxLimit));
    } catch (const std::exception&) {
      if (i == kTries) {
        throw;
      }
    }
    std::this_thread::sleep_for(kBetweenTries);  // until the server listens
  }
}

double measure_ucx(const std::string& test, std::size_t size, int count, const CpuPair& cpus) {
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i < kRuns; ++i) {
    best = std::min(best, measure_ucx_once(test, size, count, cpus));
  }
  return best;
}

}  // namespace bench
