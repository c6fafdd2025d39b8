// SPDX-License-Identifier: Apache-2.0
// Calls beside other processes that compute, of libshmem and of Open MPI's OpenSHMEM if it is installed, in one run.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/jobs.hpp"
#include "bench/options.hpp"

namespace bench {
namespace {

struct Settings {
  std::vector<int> pes{2};
  std::vector<int> neighbours{0, 1, 2};
  int nice = 0;
  int milliseconds = 250;
  bool alone = false;
  bool bound = false;
};

/// Processes that compute while the object exists.
class Neighbours {
 public:
  Neighbours(int count, int nice) {
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child < 0) {
        throw std::system_error(errno, std::generic_category(), "fork");
      }
      if (child == 0) {
        compute(nice);
      }
      children_.push_back(child);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  [[noreturn]] static void compute(int nice) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpriority(PRIO_PROCESS, 0, nice);
    for (volatile std::uint64_t sum = 0;;) {
      sum = sum + 1;
    }
  }
  std::vector<pid_t> children_;
};

/// The ticks of all processors since the machine has started.
struct Ticks {
  double busy = 0;
  double all = 0;
};
Ticks ticks_now() {
  std::ifstream in("/proc/stat");
  std::string cpu;
  in >> cpu;
  Ticks ticks;
  double value = 0;
  for (int column = 0; column < 8 && in >> value; ++column) {  // user ... steal
    const bool idle = column == 3 || column == 4;
    ticks.busy += idle ? 0 : value;
    ticks.all += value;
  }
  return ticks;
}

/// The share of the processors that other processes use now.
double use_by_others() {
  const Ticks before = ticks_now();
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  const Ticks after = ticks_now();
  return after.all > before.all ? (after.busy - before.busy) / (after.all - before.all) : 0;
}

/// Microseconds of a call.
struct Figure {
  double mean = 0;
  double middle = 0;
};
Figure figure_of(const Series& rows) {
  double time = 0;
  double calls = 0;
  for (const Point& row : rows.points) {
    time += row.figure * row.base;
    calls += row.base;
  }
  return {time / calls / 1e3, figures_of(rows.points).middle / 1e3};
}

std::string text(double microseconds) {
  return fmt::format("{:.{}f}", microseconds, microseconds < 1 ? 3 : microseconds < 100 ? 2 : 0);
}

using Figures = std::map<std::string, Figure>;

/// A column of the table: a library, and how many neighbours there were.
struct Column {
  std::string title;
  Figures figures;
};

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (!settings.alone) {
      openmpi_ = openmpi_program(folder_, "shmemc++", "BENCH_OPENMPI_SHMEM", "neighbour_worker");
    }
  }

  bool run() {
    for (const int pes : settings_.pes) {
      std::vector<Column> columns;
      for (const int neighbours : settings_.neighbours) {
        measure(pes, neighbours, columns);
      }
      print(pes, columns);
    }
    return good_;
  }

 private:
  void measure(int pes, int neighbours, std::vector<Column>& columns) {
    const Neighbours others(neighbours, settings_.nice);
    const std::vector<std::string> arguments{std::to_string(settings_.milliseconds)};
    keep(run_ours(folder_, "neighbour_worker", pes, arguments), fmt::format("ours +{}", neighbours), columns);
    if (!openmpi_) {
      return;
    }
    try {
      const Place place{.binds = settings_.bound};
      keep(openmpi_->run(pes, arguments, {}, place), fmt::format("Open MPI +{}", neighbours), columns);
    } catch (const std::exception& error) {
      std::printf("Open MPI with %d PEs: %s\n", pes, error.what());
      good_ = false;
    }
  }

  void keep(const std::vector<Series>& all, const std::string& title, std::vector<Column>& columns) {
    Column column{title, {}};
    for (const Series& series : all) {
      column.figures.emplace(series.name, figure_of(series));
      if (std::ranges::find(names_, series.name) == names_.end()) {
        names_.push_back(series.name);
      }
    }
    columns.push_back(std::move(column));
  }

  void print(int pes, const std::vector<Column>& columns) const {
    std::printf("\n%d PEs on %d processors; mean / median, microseconds\n%-18s", pes, own_processors(), "");
    for (const Column& column : columns) {
      std::printf(" %17s", column.title.c_str());
    }
    for (const std::string& name : names_) {
      std::printf("\n%-18s", name.c_str());
      for (const Column& column : columns) {
        const auto found = column.figures.find(name);
        const std::string figure =
            found == column.figures.end() ? "-" : text(found->second.mean) + " / " + text(found->second.middle);
        std::printf(" %17s", figure.c_str());
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  const Settings& settings_;
  base::TempFolder folder_;
  std::unique_ptr<OpenMpiProgram> openmpi_;
  std::vector<std::string> names_;
  bool good_ = true;
};

int run(const Settings& settings) {
  std::printf(
      "Calls beside \"+N\" other processes that compute, of nice %d. Mean of all calls, median of rows of 3 ms.\n"
      "Before the start other processes used %.0f %% of the processors.\n",
      settings.nice, 100 * use_by_others());
  std::fflush(stdout);
  return Bench(settings).run() ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_neighbours",
       .description = "Measures barriers, collectives, signals and locks beside other processes that compute, and "
                      "those of Open MPI's OpenSHMEM if installed.",
       .options = {{"PES", &settings.pes, "numbers of PEs", {{2, 16384}}},
                   {"--neighbours", &settings.neighbours, "numbers of other processes", {{0, 1024}}},
                   {"--nice", &settings.nice, "the nice value of the other processes", {{0, 19}}},
                   {"--milliseconds", &settings.milliseconds, "time for each call", {{1, 60'000}}},
                   {"--bound", &settings.bound, "let Open MPI bind its processes, as it does by default"},
                   {"--alone", &settings.alone, "libshmem only"}},
       .run = [&] { return bench::run(settings); }},
      argc, argv);
}
