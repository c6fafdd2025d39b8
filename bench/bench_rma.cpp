// SPDX-License-Identifier: Apache-2.0
// Remote memory access, atomics and collectives in one run, compared with the machine's limits, and with Open MPI's
// OpenSHMEM and UCX if they are installed.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>

#include "bench/copy_table.hpp"
#include "bench/jobs.hpp"
#include "bench/measure.hpp"
#include "bench/options.hpp"
#include "bench/ucx.hpp"

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
  const std::vector<std::pair<std::string, std::size_t>> sizes{{"64 B", 64},
                                                               {"512 B", 512},
                                                               {"4 KiB", 4096},
                                                               {"32 KiB", 32768},
                                                               {"256 KiB", 262'144},
                                                               {"1 MiB", 1 << 20},
                                                               {"4 MiB", std::size_t{4} << 20}};
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
};

std::vector<Row> join(const std::vector<Series>& ours, const std::vector<Series>& theirs) {
  std::vector<Row> rows;
  for (const Series& series : ours) {
    Row row{series.name, series.usable()};
    for (const Series& other : theirs) {
      if (other.name == series.name) {
        row.theirs = other.usable();
      }
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", value < 1000 ? 1 : 0, value);
  return text;
}

void print(const Row& row) {
  const Spread ours = figures_of(row.ours);
  std::printf("%-42s %10s %10s %10s %6.2f %7s", row.name.c_str(), number(ours.least).c_str(),
              number(ours.middle).c_str(), number(bases_of(row.ours).middle).c_str(), median_ratio(row.ours),
              number(raws_of(row.ours).middle).c_str());
  if (!row.theirs.empty()) {
    const Spread theirs = figures_of(row.theirs);
    std::printf(" | %10s %10s %7s %6.2f", number(theirs.least).c_str(), number(theirs.middle).c_str(),
                number(raws_of(row.theirs).middle).c_str(), theirs.middle / ours.middle);
  } else {
    std::printf(" | %10s %10s %7s %6s", "-", "-", "-", "-");
  }
  std::printf(" | %8s\n", row.ucx ? number(*row.ucx).c_str() : "-");
  std::fflush(stdout);
}

void print_head(const std::string& title, const char* base) {
  std::printf("\n%s; load of the machine %.1f\n%-42s %10s %10s %10s %6s %7s | %10s %10s %7s %6s | %8s\n", title.c_str(),
              load_of_machine(), "nanoseconds", "least", "median", base, "ratio", "raw", "Open MPI", "median", "raw",
              "times", "UCX");
}

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

/// Draws times over sizes, of the rows whose names are `prefix` and a size.
void draw(const std::vector<Row>& rows, const std::string& prefix, Picture& picture) {
  const auto add = [&](const std::string& name, const auto& time_of, bool dashed) {
    for (const Row& row : rows) {
      const auto size = size_behind(row.name, prefix);
      const std::optional<double> time = time_of(row);
      if (size && time) {
        picture.add(name, *size, *time, dashed);
      }
    }
  };
  add(
      "libshmem " + prefix, [](const Row& row) { return figures_of(row.ours).middle; }, false);
  add(
      "Open MPI " + prefix,
      [](const Row& row) { return row.theirs.empty() ? std::nullopt : std::optional(figures_of(row.theirs).middle); },
      true);
  add(
      "UCX " + prefix, [](const Row& row) { return row.ucx; }, true);
  if (prefix.starts_with("put")) {
    add(
        "memcpy in a process", [](const Row& row) { return bases_of(row.ours).middle; }, false);
  }
}

/// How many times as fast as Open MPI's the collectives are, over sizes.
chart::Plot compare(const std::vector<Row>& rows, const std::string& title) {
  chart::Plot plot{.title = title,
                   .x = {.name = "bytes of each PE", .logarithmic = true},
                   .y = {.name = "times as fast as Open MPI", .logarithmic = true},
                   .height = 360};
  for (const char* name : {"broadcast", "collect", "fcollect", "alltoall", "sum_reduce"}) {
    chart::Series line{.name = name};
    for (const Row& row : rows) {
      const auto size = size_behind(row.name, std::string(name) + " ");
      if (size && !row.theirs.empty()) {
        line.points.emplace_back(*size, figures_of(row.theirs).middle / figures_of(row.ours).middle);
      }
    }
    if (!line.points.empty()) {
      plot.series.push_back(std::move(line));
    }
  }
  return plot;
}

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (settings.alone) {
      return;
    }
    openmpi_ = openmpi_program(folder_, "shmemc++", "BENCH_OPENMPI_SHMEM", "rma_worker");
    ucx_ = has_ucx();
  }

  bool run() {
    auto rows = measure(2, "one-sided");
    if (ucx_) {
      measure_ucx_for(rows);
    }
    print_head("PE 0 and the memory of PE 1", "plain");
    for (const Row& row : rows) {
      print(row);
    }
    std::vector<chart::Plot> plots;
    for (const int pes : settings_.pes) {
      const std::string where = std::to_string(pes) + " PEs on " + std::to_string(own_processors()) + " processors";
      const auto together = measure(pes, "collective");
      print_head(where, "barrier");
      for (const Row& row : together) {
        print(row);
      }
      plots.push_back(compare(together, where));
      const auto followed = measure(pes, "followed");
      print_head(where + ", a barrier after each call, mean of all PEs", "raw");
      for (const Row& row : followed) {
        print(row);
      }
    }
    const auto small = measure(2, "small");
    print_head("Small calls of 2 PEs, of teams and of active sets", "raw");
    for (const Row& row : small) {
      print(row);
    }
    if (!settings_.svg_of_collectives.empty()) {
      write_svg(settings_.svg_of_collectives, plots);
    }
    if (!settings_.svg.empty()) {
      Picture picture;
      for (const char* prefix : {"put + quiet ", "get "}) {
        draw(rows, prefix, picture);
      }
      picture.write(settings_.svg, "Median time of a copy to or from another PE", "bytes", "nanoseconds");
    }
    return good_;
  }

 private:
  std::vector<Row> measure(int pes, const std::string& part) {
    const std::vector<std::string> arguments{std::to_string(settings_.repeats), part};
    const auto ours = run_ours(folder_, "rma_worker", pes, arguments);
    std::vector<Series> theirs;
    try {
      if (openmpi_) {
        theirs = openmpi_->run(pes, arguments);
      }
    } catch (const std::exception& error) {
      std::printf("Open MPI with %d PEs: %s\n", pes, error.what());
      good_ = false;
    }
    return join(ours, theirs);
  }

  void measure_ucx_for(std::vector<Row>& rows) {
    const CpuPair cpus = first_two_cpus();
    for (const UcxTest& test : ucx_tests()) {
      for (Row& row : rows) {
        if (row.name == test.name) {
          row.ucx = measure_ucx(test.test, test.size, test.count, cpus);
        }
      }
    }
  }

  const Settings& settings_;
  base::TempFolder folder_;
  std::unique_ptr<OpenMpiProgram> openmpi_;
  bool ucx_ = false;
  bool good_ = true;
};

int run(const Settings& settings) {
  if (settings.copies) {
    print_copy_table();
    return 0;
  }
  std::printf(
      "Nanoseconds per call in a series of calls, least and median of %d repeats. \"plain\": measured in the same "
      "run,\n"
      "a function that stores, loads or adds in shared memory, or memcpy within the process; ratio: to its median.\n"
      "raw: the round trip of a cache line at that time. times: the median of Open MPI relative to that of libshmem.\n",
      settings.repeats);
  return Bench(settings).run() ? 0 : 1;
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
