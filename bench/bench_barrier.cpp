// SPDX-License-Identifier: Apache-2.0
// Barriers of every algorithm in one run, compared with those of Open MPI if it is installed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "shmem/config/barrier_choice.hpp"

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

void print(int pes, const std::vector<Series>& all, Picture& picture) {
  const bool oversubscribed = pes > own_processors();
  std::printf("%d PEs on %d processors\n%-30s %12s %12s %12s", pes, own_processors(), "", "least us", "median us",
              "raw trip us");
  std::printf(oversubscribed ? " %12s %10s\n" : "%s %10s\n", oversubscribed ? "bound us" : "",
              oversubscribed ? "of bound" : "of raw");
  std::vector<double> bounds;
  for (const Series& series : all) {
    const auto points = series.usable();
    const Spread figure = figures_of(points);
    const double base = bases_of(points).middle;
    std::printf("%-30s %12.3f %12.3f %12.3f", series.name.c_str(), figure.least / 1e3, figure.middle / 1e3,
                raws_of(points).middle / 1e3);
    if (oversubscribed) {
      std::printf(" %12.3f", base / 1e3);
    }
    std::printf(" %10.2f\n", median_ratio(points));
    picture.add(series.name, pes, figure.middle / 1e3);
    bounds.push_back(base);
  }
  if (oversubscribed) {
    std::sort(bounds.begin(), bounds.end());
    picture.add(kBound, pes, bounds[bounds.size() / 2] / 1e3, /*dashed=*/true);
  }
  std::printf("\n");
  std::fflush(stdout);
}

int run_all(const std::vector<int>& sizes, const std::string& svg) {
  const base::TempFolder folder;
  const auto mpi = openmpi_program(folder, "mpic++", "BENCH_OPENMPI_MPI", "barrier_worker");
  const auto shmem = mpi ? openmpi_program(folder, "shmemc++", "BENCH_OPENMPI_SHMEM", "barrier_worker") : nullptr;
  std::printf(
      "Each figure: least and median of the repeats in which the raw round trip of a cache line, measured right\n"
      "before and after, stayed the same within a fifth; and its median ratio to that round trip or, if there are\n"
      "more PEs than processors, to the time in which each PE yields once (sched_yield), measured at the same time."
      "\n\n");
  Picture picture;
  bool good = true;
  for (const int pes : sizes) {
    auto all = measure_ours(folder, pes, all_algorithms());
    try {
      if (shmem) {
        std::ranges::copy(mpi->run(pes, {kBarrierRepeats, "MPI_Barrier (Open MPI)"}), std::back_inserter(all));
        std::ranges::copy(shmem->run(pes, {kBarrierRepeats, "shmem_barrier_all (Open MPI)"}), std::back_inserter(all));
      }
    } catch (const std::exception& error) {
      std::printf("Open MPI with %d processes: %s\n", pes, error.what());
      good = false;
    }
    print(pes, all, picture);
  }
  if (!svg.empty()) {
    picture.write(svg, fmt::format("Median time of a barrier, {} processors", own_processors()), "PEs", "microseconds");
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  std::vector<int> sizes{2, 4, 8, 16, 64};
  std::string svg;
  return bench::run_program(
      {.name = "bench_barrier",
       .description =
           "Measures barriers of every algorithm, and of Open MPI if it is installed, for each number of PEs.",
       .options = {{"PES", &sizes, "numbers of PEs", {{2, 16384}}},
                   {"--svg", &svg, "write a chart of the medians to this file"}},
       .run = [&] { return bench::run_all(sizes, svg); }},
      argc, argv);
}
