// SPDX-License-Identifier: Apache-2.0
// Calls beside other processes that compute, of libshmem and of Open MPI's OpenSHMEM if it is installed, in one run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

namespace bench {
namespace {

struct Settings {
  std::vector<int> pes{2};
  std::vector<int> neighbours{0, 1, 2};
  int nice = 0;
  int milliseconds = 250;
  bool alone = false;
};

/// Processes that compute while the object exists.
class Neighbours {
 public:
  Neighbours(int count, int nice) {
    for (int i = 0; i < count; ++i) {
      processes_.emplace_back(std::vector<std::string>{"/usr/bin/env", "nice", "-n", std::to_string(nice), "/bin/sh",
                                                       "-c", "while :; do :; done"});
    }
  }

 private:
  std::list<base::Process> processes_;
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

std::string microseconds(double nanoseconds) {
  const double value = nanoseconds / 1e3;
  return number(value, value < 1 ? 3 : value < 100 ? 2 : 0);
}

/// Mean and median of a call; the base of a point is its number of calls.
std::string mean_and_median(const Series& series) {
  double time = 0;
  double calls = 0;
  for (const Point& row : series.points) {
    time += row.figure * row.base;
    calls += row.base;
  }
  return microseconds(time / calls) + " / " + microseconds(figures_of(series.points).middle);
}

/// A column of the table: a library, and how many neighbours there were.
struct Column {
  std::string title;
  std::vector<Series> calls;
};

std::vector<Column> measure(const Settings& settings, int pes, OpenMpi& openmpi) {
  const Job job{pes, {"neighbours", std::to_string(settings.milliseconds)}};
  std::vector<Column> columns;
  for (const int count : settings.neighbours) {
    const Neighbours others(count, settings.nice);
    columns.push_back({fmt::format("ours +{}", count), run_ours(job)});
    if (auto theirs = openmpi.run(job); !theirs.empty()) {
      columns.push_back({fmt::format("Open MPI +{}", count), std::move(theirs)});
    }
  }
  return columns;
}

void print(int pes, const std::vector<Column>& columns) {
  std::string layout = "-18";
  std::vector<std::string> head{""};
  for (const Column& column : columns) {
    layout += " 17";
    head.push_back(column.title);
  }
  std::printf("\n%d PEs on %d processors; mean / median, microseconds\n", pes, own_processors());
  const Table table(layout);
  table.print(head);
  for (const Series& call : columns.front().calls) {
    std::vector<std::string> cells{call.name};
    for (const Column& column : columns) {
      const auto found = std::ranges::find(column.calls, call.name, &Series::name);
      cells.push_back(found == column.calls.end() ? "-" : mean_and_median(*found));
    }
    table.print(cells);
  }
}

int run(const Settings& settings) {
  std::printf(
      "Calls beside \"+N\" other processes that compute, of nice %d. Mean of all calls, median of rows of 3 ms.\n"
      "Before the start other processes used %.0f %% of the processors.\n",
      settings.nice, 100 * use_by_others());
  std::fflush(stdout);
  OpenMpi openmpi(OpenMpiWorker::Library::kShmem, {"neighbours"}, !settings.alone);
  for (const int pes : settings.pes) {
    print(pes, measure(settings, pes, openmpi));
  }
  return openmpi.good() ? 0 : 1;
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
                   {"--alone", &settings.alone, "libshmem only"}},
       .run = [&] { return bench::run(settings); }},
      argc, argv);
}
