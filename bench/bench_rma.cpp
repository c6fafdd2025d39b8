// SPDX-License-Identifier: Apache-2.0
// Remote memory access, atomics and collectives in one run, beside what the machine can do, Open MPI's OpenSHMEM and
// UCX where they are installed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>

#include "bench/chart.hpp"
#include "bench/cpus.hpp"
#include "bench/jobs.hpp"
#include "bench/ucx.hpp"

namespace bench {
namespace {

struct Settings {
  int repeats = 9;
  std::vector<int> pes{2, 8};
  std::string svg{};
  bool alone = false;
};

/// A test of ucx_perftest that does what a call of ours does.
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

/// A line of the report: one call, by everybody who has it.
struct Row {
  std::string name;
  std::vector<Point> ours;
  std::vector<Point> theirs{};
  std::optional<double> ucx{};
};

Spread times(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.figure; });
}
double middle_base(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.base; }).middle;
}
double middle_ratio(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.ratio(); }).middle;
}
double middle_raw(const std::vector<Point>& points) {
  return spread_of(points, [](const Point& point) { return point.raw(); }).middle;
}

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
  const Spread ours = times(row.ours);
  std::printf("%-42s %10s %10s %10s %6.2f %7s", row.name.c_str(), number(ours.least).c_str(),
              number(ours.middle).c_str(), number(middle_base(row.ours)).c_str(), middle_ratio(row.ours),
              number(middle_raw(row.ours)).c_str());
  if (!row.theirs.empty()) {
    const Spread theirs = times(row.theirs);
    std::printf(" | %10s %10s %7s %6.2f", number(theirs.least).c_str(), number(theirs.middle).c_str(),
                number(middle_raw(row.theirs)).c_str(), theirs.middle / ours.middle);
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

/// Times over sizes, of what is named `prefix` and then a size.
class Picture {
 public:
  void add(const std::vector<Row>& rows) {
    for (const char* prefix : {"put + quiet ", "get "}) {
      Line ours{"libshmem " + std::string(prefix), {}};
      Line theirs{"Open MPI " + std::string(prefix), {}, true};
      Line ucx{"UCX " + std::string(prefix), {}, true};
      Line copy{"memcpy in a process", {}};
      for (const Row& row : rows) {
        const auto size = size_behind(row.name, prefix);
        if (!size) continue;
        ours.points.emplace_back(*size, times(row.ours).middle);
        copy.points.emplace_back(*size, middle_base(row.ours));
        if (!row.theirs.empty()) theirs.points.emplace_back(*size, times(row.theirs).middle);
        if (row.ucx) ucx.points.emplace_back(*size, *row.ucx);
      }
      for (Line* line : {&ours, &theirs, &ucx, &copy}) {
        if (!line->points.empty() && (line != &copy || lines_.size() < 4)) lines_.push_back(*line);
      }
    }
  }
  void write(const std::string& file) const {
    std::ofstream out(file);
    out << log_log_chart("Median time of a copy to or from another PE", "bytes", "nanoseconds", lines_);
    if (!out) {
      throw std::runtime_error("cannot write " + file);
    }
  }

 private:
  static std::optional<double> size_behind(const std::string& name, const std::string& prefix) {
    char unit[4] = "";
    double value = 0;
    int end = 0;
    if (name.rfind(prefix, 0) != 0 || std::sscanf(name.c_str() + prefix.size(), "%lf %3s%n", &value, unit, &end) != 2 ||
        prefix.size() + static_cast<std::size_t>(end) != name.size()) {
      return std::nullopt;
    }
    return value * (unit[0] == 'K' ? 1024.0 : unit[0] == 'M' ? 1024.0 * 1024.0 : 1.0);
  }

  std::vector<Line> lines_;
};

class Bench {
 public:
  explicit Bench(const Settings& settings) : settings_(settings) {
    if (settings.alone) return;
    try {
      openmpi_ = std::make_unique<OpenMpiProgram>(
          folder_, "shmemc++", "BENCH_OPENMPI_SHMEM",
          std::vector<std::string>{"rma_worker", "item", "rma_items", "rma_collectives", "conductor", "points",
                                   "round_trip", "cpus"});
    } catch (const std::exception& error) {
      std::printf("Open MPI's is left out (packages openmpi-bin, libopenmpi-dev): %s\n", error.what());
    }
    ucx_ = has_ucx();
    if (!ucx_) {
      std::printf("UCX is left out (package ucx-utils)\n");
    }
  }

  bool run() {
    auto rows = measure(2, "one-sided");
    if (ucx_) {
      measure_ucx_beside(rows);
    }
    print_head("PE 0 and the memory of PE 1", "plain");
    for (const Row& row : rows) print(row);
    for (const int pes : settings_.pes) {
      const auto together = measure(pes, "collective");
      print_head(std::to_string(pes) + " PEs on " + std::to_string(own_processors()) + " processors", "barrier");
      for (const Row& row : together) print(row);
    }
    if (!settings_.svg.empty()) {
      Picture picture;
      picture.add(rows);
      picture.write(settings_.svg);
    }
    return good_;
  }

 private:
  std::vector<Row> measure(int pes, const std::string& part) {
    const std::vector<std::string> arguments{std::to_string(settings_.repeats), part};
    const auto ours = run_ours(folder_, "rma_worker", pes, arguments);
    std::vector<Series> theirs;
    try {
      if (openmpi_) theirs = openmpi_->run(pes, arguments);
    } catch (const std::exception& error) {
      std::printf("Open MPI with %d PEs: %s\n", pes, error.what());
      good_ = false;
    }
    return join(ours, theirs);
  }

  void measure_ucx_beside(std::vector<Row>& rows) {
    const CpuPair cpus = first_two_cpus();
    for (const UcxTest& test : ucx_tests()) {
      for (Row& row : rows) {
        if (row.name == test.name) row.ucx = measure_ucx(test.test, test.size, test.count, cpus);
      }
    }
  }

  const Settings& settings_;
  Folder folder_;
  std::unique_ptr<OpenMpiProgram> openmpi_;
  bool ucx_ = false;
  bool good_ = true;
};

int run(int argc, char** argv) {
  CLI::App app(
      "Measures puts, gets, atomics and collectives, and Open MPI's OpenSHMEM and UCX where they are installed.",
      "bench_rma");
  Settings settings;
  app.add_option("PES", settings.pes, "numbers of PEs of collectives")
      ->check(CLI::Range(2, 16384))
      ->capture_default_str();
  app.add_option("--repeats", settings.repeats, "how often each is measured")->check(CLI::Range(1, 1000));
  app.add_option("--svg", settings.svg, "write a picture of puts and gets over their sizes to this file");
  app.add_flag("--alone", settings.alone, "libshmem only");
  CLI11_PARSE(app, argc, argv);
  if (own_processors() < 2) {
    std::printf("What goes on between two processors cannot be measured on one.\n");
    return 77;
  }
  std::printf(
      "Nanoseconds of one call in a row of them, least and median of %d repeats. \"plain\": what stands beside it in\n"
      "the same run: a function that stores, loads or adds in shared memory, or memcpy within the process; ratio: its\n"
      "median. raw: the round trip of a cache line at that time. times: the medians of Open MPI and of libshmem.\n",
      settings.repeats);
  return Bench(settings).run() ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try { return bench::run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "bench_rma: %s\n", error.what());
  return 1;
}
