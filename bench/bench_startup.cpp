// SPDX-License-Identifier: Apache-2.0
// The time of a job with only shmem_init and shmem_finalize, compared with that of as many processes that do nothing,
// and the memory of its PEs: libshmem with and without a fake device, and Open MPI's OpenSHMEM if it is installed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/temp_folder.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using base::Seconds;
using Command = std::vector<std::string>;

constexpr int kRepeats = 5;
constexpr Seconds kLimit{60};
/// A launcher that takes longer is skipped for larger numbers of PEs, since its time may grow with their square.
constexpr Seconds kSkipAfter{10};
constexpr const char* kOurs = "bench_hello";
constexpr const char* kTheirs = "openmpi_hello";

/// The number after `name` in a file of /proc; 0 if it is missing, for example because the process has ended.
double number_after(const std::string& name, const std::string& file) {
  std::ifstream stream(file);
  double value = 0;
  for (std::string word; stream >> word;) {
    if (word == name && stream >> value) {
      return value;
    }
  }
  return 0;
}

/// In kB.
struct MemoryUse {
  double pss = 0;          // private memory, and a proportional share of shared memory
  double page_tables = 0;  // of the processes
};

/// All running programs of this name (at most 15 characters), together.
MemoryUse memory_use_of(const std::string& program) {
  MemoryUse use;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string process = entry.path();
    std::string name;
    std::ifstream(process + "/comm") >> name;
    if (name == program) {
      use.pss += number_after("Pss:", process + "/smaps_rollup");
      use.page_tables += number_after("VmPTE:", process + "/status");
    }
  }
  return use;
}

/// The memory that the kernel could still give to programs, in kB.
double available_memory() {
  return number_after("MemAvailable:", "/proc/meminfo");
}

struct Launcher {
  std::string name;
  std::string program;  // its name in /proc
  std::function<Command(int pes)> command;
  bool too_slow = false;
};

Launcher ours(const std::string& gba) {
  return {"oshrun --gba " + gba, kOurs, [gba](int pes) -> Command {
            return {sibling_program("oshrun"), "-n", std::to_string(pes), "--gba", gba, sibling_program(kOurs)};
          }};
}

/// Processes that do nothing: what the launcher and the kernel take.
Command empty_processes(int pes) {
  return {sibling_program("oshrun"), "-n", std::to_string(pes), "/bin/true"};
}

/// Open MPI's launcher, with the same program built by its compiler wrapper.
Launcher theirs(const base::TempFolder& folder) {
  const std::string file = folder.file(kTheirs);
  output_of({"/usr/bin/env", "shmemcc", "-O2", "-o", file, BENCH_HELLO_SOURCE}, {}, kLimit);
  return {"mpirun of Open MPI", kTheirs, [file](int pes) -> Command {
            return {"/usr/bin/env",      "mpirun", "--oversubscribe", "--allow-run-as-root", "-np",
                    std::to_string(pes), file};
          }};
}

/// Without this, Debian's Open MPI crashes at the end.
const std::vector<std::string> kEnvironment{"OMPI_MCA_opal_common_ucx_opal_mem_hooks=0"};

const base::ProcessOptions kQuiet{.output = base::Output::kDiscarded, .grace = kGrace};

/// The time from start to end; more than kLimit if the command is not done by then.
Seconds time_of(const Command& command) {
  const auto start = Clock::now();
  base::Process child(command, kEnvironment, kQuiet);
  const auto exit = child.wait(kLimit);
  const Seconds time = Clock::now() - start;
  if (exit && !exit->clean()) {
    throw std::runtime_error(command.front() + " failed");
  }
  return time;
}

/// Jobs of this launcher and empty processes in turn.
void print_time(Launcher& launcher, int pes) {
  std::vector<Seconds> times;
  std::vector<Seconds> empty;
  for (int i = 0; i < kRepeats && (times.empty() || times.front() < kSkipAfter); ++i) {
    empty.push_back(time_of(empty_processes(pes)));
    times.push_back(time_of(launcher.command(pes)));
  }
  std::sort(times.begin(), times.end());
  std::sort(empty.begin(), empty.end());
  launcher.too_slow = times.front() >= kSkipAfter;
  const Seconds middle = times[times.size() / 2];
  const Seconds middle_empty = empty[empty.size() / 2];
  std::printf("  least %.3f s, middle %.3f s of %zu, %.1f times empty processes (%.3f s)", times.front().count(),
              middle.count(), times.size(), middle / middle_empty, middle_empty.count());
}

/// True once the job has made the file.
bool await_file(const std::string& file, base::Process& job) {
  const auto end = Clock::now() + kLimit;
  while (!std::filesystem::exists(file)) {
    if (Clock::now() >= end || !job.running()) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  return true;
}

void print_memory(const Launcher& launcher, int pes) {
  const base::TempFolder folder;
  const std::string stay = folder.file("stay");
  std::ofstream(stay) << "\n";
  Command command = launcher.command(pes);
  command.push_back(stay);
  const double before = available_memory();
  base::Process job(command, kEnvironment, kQuiet);
  if (!await_file(stay + ".ready", job)) {
    std::printf("; memory: the job does not start\n");
    return;
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{200});  // all PEs sleep in their barrier by then
  const double taken = before - available_memory();
  const MemoryUse use = memory_use_of(launcher.program);
  std::printf("; each: PSS %.0f kB, page tables %.0f kB; the machine has %.0f kB less per PE\n", use.pss / pes,
              use.page_tables / pes, taken / pes);
  std::filesystem::remove(stay);
  job.wait(kLimit);
}

int run_all(const std::vector<int>& sizes) {
  const base::TempFolder folder;
  std::vector<Launcher> launchers{ours("off"), ours("fake")};
  try {
    launchers.push_back(theirs(folder));
  } catch (const std::exception& error) {
    std::printf("Open MPI is skipped (packages openmpi-bin, libopenmpi-dev): %s\n", error.what());
  }
  for (const int pes : sizes) {
    for (Launcher& launcher : launchers) {
      std::printf("%4d PEs, %-20s", pes, launcher.name.c_str());
      if (launcher.too_slow) {
        std::printf("  skipped: fewer PEs took more than %.0f s\n", kSkipAfter.count());
        continue;
      }
      print_time(launcher, pes);
      print_memory(launcher, pes);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::vector<int> sizes{2, 16, 64, 256, 708};
  return bench::run_program({.name = "bench_startup",
                             .description = "Measures the start and end of jobs.",
                             .options = {{"PES", &sizes, "numbers of PEs", {{1, 16384}}}},
                             .run = [&] { return bench::run_all(sizes); }},
                            argc, argv);
}
