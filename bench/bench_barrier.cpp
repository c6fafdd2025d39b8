// SPDX-License-Identifier: Apache-2.0
// Barriers of every algorithm in one run, beside Open MPI's where it is installed.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>

#include "bench/chart.hpp"
#include "bench/jobs.hpp"
#include "shmem/barrier/algorithm_table.hpp"

namespace bench {
namespace {

constexpr const char* kBound = "N x switch / processors";

std::vector<std::string> all_algorithms() {
  std::vector<std::string> names{"auto"};
  for (const auto& spec : shmem::kAlgorithms) {
    names.emplace_back(spec.name);
  }
  return names;
}

/// The lines of the picture.
class Figures {
 public:
  void add(int pes, const std::string& name, double nanoseconds) {
    const auto found =
        std::find_if(lines_.begin(), lines_.end(), [&name](const Line& line) { return line.name == name; });
    Line& line = found != lines_.end() ? *found : lines_.emplace_back(Line{name, {}, name == kBound});
    line.points.emplace_back(pes, nanoseconds / 1e3);
  }
  void write(const std::string& file) const {
    std::ofstream out(file);
    out << log_log_chart("Median time of a barrier, " + std::to_string(own_processors()) + " processors", "PEs",
                         "microseconds", lines_);
    if (!out) {
      throw std::runtime_error("cannot write " + file);
    }
  }

 private:
  std::vector<Line> lines_;
};

void print(int pes, const std::vector<Series>& all, Figures& figures) {
  const bool crowded = pes > own_processors();
  std::printf("%d PEs on %d processors\n%-30s %12s %12s %12s", pes, own_processors(), "", "least us", "median us",
              "raw trip us");
  std::printf(crowded ? " %12s %10s\n" : "%s %10s\n", crowded ? "bound us" : "", crowded ? "of bound" : "of raw");
  std::vector<double> bounds;
  for (const Series& series : all) {
    const auto points = series.usable();
    const Spread figure = spread_of(points, [](const Point& point) { return point.figure; });
    const double raw = spread_of(points, [](const Point& point) { return point.raw(); }).middle;
    const double base = spread_of(points, [](const Point& point) { return point.base; }).middle;
    const double ratio = spread_of(points, [](const Point& point) { return point.ratio(); }).middle;
    std::printf("%-30s %12.3f %12.3f %12.3f", series.name.c_str(), figure.least / 1e3, figure.middle / 1e3, raw / 1e3);
    if (crowded) std::printf(" %12.3f", base / 1e3);
    std::printf(" %10.2f\n", ratio);
    figures.add(pes, series.name, figure.middle);
    bounds.push_back(base);
  }
  if (crowded) {
    std::sort(bounds.begin(), bounds.end());
    figures.add(pes, kBound, bounds[bounds.size() / 2]);
  }
  std::printf("\n");
  std::fflush(stdout);
}

int run_all(const std::vector<int>& sizes, const std::string& svg) {
  const Folder folder;
  std::unique_ptr<OpenMpi> openmpi;
  try {
    openmpi = std::make_unique<OpenMpi>(folder);
  } catch (const std::exception& error) {
    std::printf("Open MPI's is left out (packages openmpi-bin, libopenmpi-dev): %s\n", error.what());
  }
  std::printf(
      "Each figure: least and median of the repeats in which the raw round trip of a cache line, measured right\n"
      "before and after, stayed the same within a fifth; and its median ratio to that round trip, or, where PEs\n"
      "outnumber processors, to the time in which each of them gives way once (sched_yield), measured beside.\n\n");
  Figures figures;
  bool good = true;
  for (const int pes : sizes) {
    auto all = measure_ours(folder, pes, all_algorithms());
    try {
      const auto theirs = openmpi ? openmpi->measure(pes) : std::vector<Series>{};
      all.insert(all.end(), theirs.begin(), theirs.end());
    } catch (const std::exception& error) {
      std::printf("Open MPI with %d processes: %s\n", pes, error.what());
      good = false;
    }
    print(pes, all, figures);
  }
  if (!svg.empty()) {
    figures.write(svg);
  }
  return good ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app("Measures barriers of every algorithm, and Open MPI's where it is installed, for each number of PEs.",
               "bench_barrier");
  std::vector<int> sizes{2, 4, 8, 16, 64};
  std::string svg;
  app.add_option("PES", sizes, "numbers of PEs")->check(CLI::Range(2, 16384))->capture_default_str();
  app.add_option("--svg", svg, "write a picture of the medians to this file");
  CLI11_PARSE(app, argc, argv);
  return run_all(sizes, svg);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try { return bench::run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "bench_barrier: %s\n", error.what());
  return 1;
}
