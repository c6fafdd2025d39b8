// SPDX-License-Identifier: Apache-2.0
// Calls beside other processes that compute, of libshmem and of Open MPI's OpenSHMEM if it is installed, in one run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <list>
#include <optional>
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
  std::vector<int> nice{0};
  int milliseconds = 250;
  int runs = 1;
  std::vector<std::string> launch{};
  std::string gba{"off"};
  std::string svg{};
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

/// One library beside so many neighbours: its calls in each run.
struct Column {
  std::string library;
  int neighbours;
  std::vector<std::vector<Series>> runs{};
};

/// Nanoseconds of a call: medians of the runs.
struct Figure {
  double mean, median;
};
/// None if a run lacks the call. The base of a point is its number of calls.
std::optional<Figure> figure_of(const Column& column, const std::string& call) {
  std::vector<Point> means;
  std::vector<Point> medians;
  for (const auto& calls : column.runs) {
    const auto found = std::ranges::find(calls, call, &Series::name);
    if (found == calls.end()) {
      return {};
    }
    double time = 0;
    double count = 0;
    for (const Point& row : found->points) {
      time += row.figure * row.base;
      count += row.base;
    }
    means.push_back({.raw_before = 1, .figure = time / count, .base = 1, .raw_after = 1});
    medians.push_back({.raw_before = 1, .figure = figures_of(found->points).middle, .base = 1, .raw_after = 1});
  }
  return Figure{figures_of(means).middle, figures_of(medians).middle};
}

std::vector<Column> measure(const Settings& settings, int pes, int nice, OpenMpi& openmpi) {
  const Job job{.pes = pes,
                .arguments = {"neighbours", std::to_string(settings.milliseconds)},
                .launch = settings.launch,
                .gba = settings.gba};
  std::vector<Column> columns;
  for (const int count : settings.neighbours) {
    columns.push_back({"libshmem", count});
    if (openmpi.installed()) {
      columns.push_back({"Open MPI", count});
    }
  }
  for (int run = 0; run < settings.runs; ++run) {
    for (auto column = columns.begin(); column != columns.end();) {
      const Neighbours others(column->neighbours, nice);
      (column++)->runs.push_back(run_ours(job));
      if (openmpi.installed()) {
        (column++)->runs.push_back(openmpi.run(job));
      }
    }
  }
  return columns;
}

void print(int pes, int nice, const std::vector<Column>& columns) {
  std::string layout = "-18";
  std::vector<std::string> head{""};
  for (const Column& column : columns) {
    layout += " 17";
    head.push_back(fmt::format("{} +{}", column.library, column.neighbours));
  }
  std::printf("\n%d PEs on %d processors, other processes of nice %d; mean / median, microseconds\n", pes,
              own_processors(), nice);
  const Table table(layout);
  table.print(head);
  for (const Series& call : columns.front().runs.front()) {
    std::vector<std::string> cells{call.name};
    for (const Column& column : columns) {
      const auto figure = figure_of(column, call.name);
      cells.push_back(figure ? microseconds(figure->mean) + " / " + microseconds(figure->median) : "-");
    }
    table.print(cells);
  }
}

chart::Plot plot_of(int pes, int nice, const std::vector<Column>& columns) {
  chart::Plot plot{
      .title = fmt::format("{} PEs on {} processors, other processes of nice {}", pes, own_processors(), nice),
      .x = {.name = "other processes that compute"},
      .y = {.name = "microseconds, mean of all calls", .logarithmic = true},
      .height = 360};
  for (const Column& column : columns) {
    for (const char* const call : {"barrier", "sum 2 KiB", "signal"}) {
      if (const auto figure = figure_of(column, call)) {
        add_point(plot, fmt::format("{}, {}", call, column.library), column.neighbours, figure->mean / 1e3,
                  /*dashed=*/column.library != "libshmem");
      }
    }
  }
  return plot;
}

int run(const Settings& settings) {
  std::printf(
      "Calls beside \"+N\" other processes that compute. Mean of all calls, median of rows of 3 ms; medians of %d "
      "runs.\n"
      "Before the start other processes used %.0f %% of the processors.\n",
      settings.runs, 100 * use_by_others());
  std::fflush(stdout);
  OpenMpi openmpi(OpenMpiWorker::Library::kShmem, {"neighbours"}, !settings.alone);
  std::vector<chart::Plot> plots;
  for (const int pes : settings.pes) {
    for (const int nice : settings.nice) {
      const auto columns = measure(settings, pes, nice, openmpi);
      print(pes, nice, columns);
      if (nice == settings.nice.front()) {
        plots.push_back(plot_of(pes, nice, columns));
      }
    }
  }
  write_svg(settings.svg, plots);
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
                   {"--nice", &settings.nice, "nice values of the other processes", {{0, 19}}},
                   {"--milliseconds", &settings.milliseconds, "time for each call", {{1, 60'000}}},
                   {"--runs", &settings.runs, "runs of each job, of which medians are printed", {{1, 99}}},
                   {"--launch", &settings.launch,
                    "start all jobs by this command, which the number of PEs follows: srun,--mpi=pmix,-n"},
                   {"--gba", &settings.gba, "use this device, or fake; for libshmem's jobs by oshrun"},
                   {"--svg", &settings.svg,
                    "write a chart of three calls beside those of the first nice value to this file"},
                   {"--alone", &settings.alone, "libshmem only"}},
       .run = [&] { return bench::run(settings); }},
      argc, argv);
}
