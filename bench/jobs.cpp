// SPDX-License-Identifier: Apache-2.0
#include "bench/jobs.hpp"

#include <sched.h>
#include <stdlib.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/worker.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kCompilation{120};
constexpr std::chrono::seconds kLimit{180};

/// Enough of a program's output to see the error.
std::string end_of(const std::string& output) {
  constexpr std::size_t kMost = 500;
  return output.size() <= kMost ? output : "..." + output.substr(output.size() - kMost);
}

}  // namespace

std::string sibling_program(const std::string& name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::string worker_program(const std::string& name) {
  std::string built = sibling_program(name);
  return std::filesystem::exists(built) ? built : sibling_program(std::string(BENCH_WORKER_FOLDER "/") + name);
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

std::string new_control_file(const base::TempFolder& folder) {
  std::string file = folder.file("control");
  std::filesystem::remove(file);
  std::ofstream(file).close();
  std::filesystem::resize_file(file, sizeof(ControlBlock));
  return file;
}

int own_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  return CPU_COUNT(&allowed);
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) == 0) {
      return line.substr(line.find(':') + 2);
    }
  }
  return "unknown processor";
}

double load_of_machine() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

std::vector<Series> run_ours(const base::TempFolder& folder, const std::string& worker, int pes,
                             const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
  std::vector<std::string> command{
      sibling_program("oshrun"), "-n", std::to_string(pes), "--gba", "off", worker_program(worker),
      new_control_file(folder)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return read_series(output_of(command, environment, kLimit));
}

std::vector<Series> run_by_mpirun(const base::TempFolder& folder, const std::string& program, int pes,
                                  const std::vector<std::string>& arguments,
                                  const std::vector<std::string>& environment, const Place& place) {
  std::vector<std::string> command = place.before;
  command.insert(command.end(),
                 {"/usr/bin/env", "mpirun", "--oversubscribe", "--allow-run-as-root", "-np", std::to_string(pes)});
  if (!place.binds) {
    command.insert(command.end(), {"--bind-to", "none"});  // most workers bind themselves
  }
  if (!place.hosts.empty()) {
    command.insert(command.end(), {"--host", place.hosts});
  }
  command.insert(command.end(), {program, new_control_file(folder)});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return read_series(output_of(command, environment, kLimit));
}

OpenMpiProgram::OpenMpiProgram(const base::TempFolder& folder, const char* compiler, const char* macro,
                               const std::string& worker)
    : folder_(folder), program_(folder.file(worker + macro)) {
  const std::string root = BENCH_SOURCE_ROOT;
  std::vector<std::string> command{
      "/usr/bin/env", compiler, "-std=c++20", "-O2", "-I" + root, std::string("-D") + macro, "-o", program_};
  for (const std::string& source : {worker, std::string("worker"), std::string("measure"), std::string("kv_cache")}) {
    command.push_back(fmt::format("{}/bench/{}.cpp", root, source));
  }
  output_of(command, {}, kCompilation);
}

std::vector<Series> OpenMpiProgram::run(int pes, const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& environment, const Place& place) const {
  // Without that variable, Debian's Open MPI crashes at the end.
  std::vector<std::string> all{"OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"};
  all.insert(all.end(), environment.begin(), environment.end());
  return run_by_mpirun(folder_, program_, pes, arguments, all, place);
}

std::vector<Series> measure_ours(const base::TempFolder& folder, int pes, const std::vector<std::string>& names,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> arguments{kBarrierRepeats};
  arguments.insert(arguments.end(), names.begin(), names.end());
  return run_ours(folder, "barrier_worker", pes, arguments, environment);
}

std::unique_ptr<OpenMpiProgram> openmpi_program(const base::TempFolder& folder, const char* compiler, const char* macro,
                                                const std::string& worker) {
  try {
    return std::make_unique<OpenMpiProgram>(folder, compiler, macro, worker);
  } catch (const std::exception& error) {
    std::printf("Open MPI is skipped (packages openmpi-bin, libopenmpi-dev): %s\n", error.what());
    return nullptr;
  }
}

void Picture::add(const std::string& name, double x, double y, bool dashed) {
  const auto found = std::ranges::find(lines_, name, &chart::Series::name);
  chart::Series& line =
      found != lines_.end() ? *found : lines_.emplace_back(chart::Series{.name = name, .dashed = dashed});
  line.points.emplace_back(x, y);
}

void Picture::write(const std::string& file, const std::string& title, const char* x_name, const char* y_name) const {
  write_svg(file, {{.title = title,
                    .x = {.name = x_name, .logarithmic = true},
                    .y = {.name = y_name, .logarithmic = true},
                    .series = lines_}});
}

void write_svg(const std::string& file, const std::vector<chart::Plot>& plots) {
  std::ofstream out(file);
  out << chart::to_svg(plots) << std::flush;
  if (!out) {
    throw std::runtime_error("cannot write " + file);
  }
}

}  // namespace bench
