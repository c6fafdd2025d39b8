// SPDX-License-Identifier: Apache-2.0
// Remote memory access, atomics and collectives in one run, compared with the machine's limits, and with Open MPI's
// OpenSHMEM and UCX if they are installed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "bench/copy_table.hpp"
#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"

namespace bench {
namespace {

struct Settings {
  int repeats = 9;
  std::vector<int> pes{2, 8};
  std::string svg{};
  std::string svg_of_collectives{};
  bool alone = false;
  bool copies = false;
};

/// A test of ucx_perftest that does the same as a call of libshmem.
struct UcxTest {
  std::string name;
  std::string test;
  std::size_t size;
  int count;
};

std::vector<UcxTest> ucx_tests() {
  std::vector<UcxTest> tests{{"put 8 B", "ucp_put_bw", 8, 200'000},
                             {"get 8 B", "ucp_get", 8, 200'000},
                             {"atomic add", "ucp_add", 8, 200'000},
                             {"atomic fetch_add", "ucp_fadd", 8, 200'000},
                             {"atomic compare_swap", "ucp_cswap", 8, 200'000}};
  const std::vector<std::pair<std::string, std::size_t>> sizes{
      {"64 B", 64},         {"512 B", 512},     {"4 KiB", 4096},     {"32 KiB", 32768},
      {"256 KiB", 262'144}, {"1 MiB", 1 << 20}, {"4 MiB", 4UL << 20}};
  for (const auto& [text, size] : sizes) {
    const int count = static_cast<int>(std::clamp<std::size_t>((std::size_t{256} << 20) / size, 50, 100'000));
    tests.push_back({"put + quiet " + text, "ucp_put_bw", size, count});
    tests.push_back({"get " + text, "ucp_get", size, count});
  }
  return tests;
}

/// A line of the report: one call, for every library that has it.
struct Row {
  std::string name;
  std::vector<Point> ours;
  std::vector<Point> theirs{};
  std::optional<double> ucx{};

  [[nodiscard]] double our_time() const { return figures_of(ours).middle; }
  [[nodiscard]] std::optional<double> their_time() const {
    return theirs.empty() ? std::nullopt : std::optional(figures_of(theirs).middle);
  }
};

std::vector<Row> join(const std::vector<Series>& ours, const std::vector<Series>& theirs) {
  std::vector<Row> rows;
  for (const Series& series : ours) {
    rows.push_back({series.name, series.usable()});
    for (const Series& other : theirs) {
      if (other.name == series.name) {
        rows.back().theirs = other.usable();
      }
    }
  }
  return rows;
}

std::string nanoseconds(std::optional<double> value) {
  return number(value, value && *value < 1000 ? 1 : 0);
}

void print(const std::string& title, const char* base, const std::vector<Row>& rows) {
  std::printf("\n%s; load of the machine %.1f\n", title.c_str(), load_of_machine());
  const Table table("-42 10 10 10 6 7 | 10 10 7 6 | 8");
  table.print({"nanoseconds", "least", "median", base, "ratio", "raw", "Open MPI", "median", "raw", "times", "UCX"});
  for (const Row& row : rows) {
    const Spread ours = figures_of(row.ours);
    std::vector<std::string> cells{row.name,
                                   nanoseconds(ours.least),
                                   nanoseconds(ours.middle),
                                   nanoseconds(bases_of(row.ours).middle),
                                   number(median_ratio(row.ours), 2),
                                   nanoseconds(raws_of(row.ours).middle)};
    if (row.theirs.empty()) {
      cells.insert(cells.end(), {"-", "-", "-", "-"});
    } else {
      const Spread theirs = figures_of(row.theirs);
      cells.insert(cells.end(), {nanoseconds(theirs.least), nanoseconds(theirs.middle),
                                 nanoseconds(raws_of(row.theirs).middle), number(theirs.middle / ours.middle, 2)});
    }
    cells.push_back(nanoseconds(row.ucx));
    table.print(cells);
  }
}

/// The size in a name that is `prefix` and a size.
std::optional<double> size_behind(const std::string& name, const std::string& prefix) {
  char unit[4] = "";
  double value = 0;
  int end = 0;
  if (!name.starts_with(prefix) || std::sscanf(name.c_str() + prefix.size(), "%lf %3s%n", &value, unit, &end) != 2 ||
      prefix.size() + static_cast<std::size_t>(end) != name.size()) {
    return std::nullopt;
  }
  return value * (unit[0] == 'K' ? 1024.0 : unit[0] == 'M' ? 1024.0 * 1024.0 : 1.0);
}

/// Times of puts and gets over their sizes.
chart::Plot plot_of_times(const std::vector<Row>& rows) {
  auto plot = logarithmic_plot("Median time of a copy to or from another PE", "bytes", "nanoseconds");
  for (const std::string prefix : {"put + quiet ", "get "}) {
    for (const Row& row : rows) {
      if (const auto size = size_behind(row.name, prefix)) {
        add_point(plot, "libshmem " + prefix, *size, row.our_time());
        add_point(plot, "Open MPI " + prefix, *size, row.their_time(), /*dashed=*/true);
        add_point(plot, "UCX " + prefix, *size, row.ucx, /*dashed=*/true);
        if (prefix.starts_with("put")) {
          add_point(plot, "memcpy in a process", *size, bases_of(row.ours).middle);
        }
      }
    }
  }
  return plot;
}

/// How many times as fast as Open MPI's the collectives are, over sizes.
chart::Plot compare(const std::vector<Row>& rows, const std::string& title) {
  auto plot = logarithmic_plot(title, "bytes of each PE", "times as fast as Open MPI");
  plot.height = 360;
  for (const std::string name : {"broadcast", "collect", "fcollect", "alltoall", "sum_reduce"}) {
    for (const Row& row : rows) {
      const auto size = size_behind(row.name, name + " ");
      if (size && row.their_time()) {
        add_point(plot, name, *size, *row.their_time() / row.our_time());
      }
    }
  }
  return plot;
}

void measure_ucx_for(std::vector<Row>& rows) {
  const CpuPair cpus = first_two_cpus();
  for (const UcxTest& test : ucx_tests()) {
    const auto row = std::ranges::find(rows, test.name, &Row::name);
    if (row != rows.end()) {
      row->ucx = measure_ucx(test.test, test.size, test.count, cpus);
    }
  }
}

int measure_calls(const Settings& settings) {
  std::printf(
      "Nanoseconds per call in a series of calls, least and median of %d repeats. \"plain\": measured in the same "
      "run,\n"
      "a function that stores, loads or adds in shared memory, or memcpy within the process; ratio: to its median.\n"
      "raw: the round trip of a cache line at that time. times: the median of Open MPI relative to that of libshmem.\n",
      settings.repeats);
  OpenMpi openmpi(OpenMpiWorker::Library::kShmem, {"one_sided", "collectives"}, !settings.alone);
  const bool ucx = !settings.alone && has_ucx();
  const auto measure = [&](int pes, const char* part) {
    const Job job{pes, {part, std::to_string(settings.repeats)}};
    return join(run_ours(job), openmpi.run(job));
  };
  auto one_sided = measure(2, "one-sided");
  if (ucx) {
    measure_ucx_for(one_sided);
  }
  print("PE 0 and the memory of PE 1", "plain", one_sided);
  std::vector<chart::Plot> plots;
  for (const int pes : settings.pes) {
    const std::string where = fmt::format("{} PEs on {} processors", pes, own_processors());
    const auto together = measure(pes, "collective");
    print(where, "barrier", together);
    plots.push_back(compare(together, where));
    print(where + ", a barrier after each call, mean of all PEs", "raw", measure(pes, "followed"));
  }
  print("Small calls of 2 PEs, of teams and of active sets", "raw", measure(2, "small"));
  write_svg(settings.svg_of_collectives, plots);
  write_svg(settings.svg, {plot_of_times(one_sided)});
  return openmpi.good() ? 0 : 1;
}

int run(const Settings& settings) {
  if (settings.copies) {
    print_copy_table();
    return 0;
  }
  return measure_calls(settings);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {.name = "bench_rma",
       .description =
           "Measures puts, gets, atomics and collectives, and those of Open MPI's OpenSHMEM and UCX if installed.",
       .options = {{"PES", &settings.pes, "numbers of PEs for collectives", {{2, 16384}}},
                   {"--repeats", &settings.repeats, "measurements of each", {{1, 1000}}},
                   {"--svg", &settings.svg, "write a chart of puts and gets over their sizes to this file"},
                   {"--svg-collectives", &settings.svg_of_collectives,
                    "write a chart of the collectives' speed relative to Open MPI's to this file"},
                   {"--alone", &settings.alone, "libshmem only"},
                   {"--copies", &settings.copies,
                    "instead, how much the time of a copy depends on the addresses, compared with memcpy"}},
       .run = [&] { return bench::run(settings); },
       .needs_two_processors = true},
      argc, argv);
}
