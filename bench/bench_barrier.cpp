// SPDX-License-Identifier: Apache-2.0
// Barriers of every algorithm in one run, compared with those of Open MPI if it is installed.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "bench/jobs.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "shmem/config/barrier_choice.hpp"

namespace bench {
namespace {

std::vector<std::string> all_algorithms() {
  std::vector<std::string> names{"auto"};
  for (const auto& spec : shmem::kAlgorithms) {
    names.emplace_back(spec.name);
  }
  return names;
}

std::string microseconds(double nanoseconds) {
  return number(nanoseconds / 1e3, 3);
}

void print(int pes, const std::vector<Series>& all, chart::Plot& plot) {
  const bool oversubscribed = pes > own_processors();
  std::printf("%d PEs on %d processors\n", pes, own_processors());
  const Table table(oversubscribed ? "-30 12 12 12 12 10" : "-30 12 12 12 10");
  std::vector<std::string> head{"", "least us", "median us", "raw trip us", oversubscribed ? "of bound" : "of raw"};
  if (oversubscribed) {
    head.insert(head.end() - 1, "bound us");
  }
  table.print(head);
  std::vector<double> bounds;
  for (const Series& series : all) {
    const auto points = series.usable();
    const Spread figure = figures_of(points);
    bounds.push_back(bases_of(points).middle);
    std::vector<std::string> cells{series.name, microseconds(figure.least), microseconds(figure.middle),
                                   microseconds(raws_of(points).middle), number(median_ratio(points), 2)};
    if (oversubscribed) {
      cells.insert(cells.end() - 1, microseconds(bounds.back()));
    }
    table.print(cells);
    add_point(plot, series.name, pes, figure.middle / 1e3);
  }
  if (oversubscribed) {
    std::sort(bounds.begin(), bounds.end());
    add_point(plot, "N x switch / processors", pes, bounds[bounds.size() / 2] / 1e3, /*dashed=*/true);
  }
  std::puts("");
}

/// Ascend SHMEM's algorithms in kernels, by numbers of cores.
void print_kernel_barriers(int pes) {
  std::printf("%d PEs, in kernels: all cores of all PEs\n", pes);
  const Table table("-30 12 12 12 10");
  table.print({"", "least us", "median us", "raw trip us", "of raw"});
  for (const Series& series : run_ours({pes, {"kernel barriers", kBarrierRepeats, "1", "2", "4"}})) {
    const auto points = series.usable();
    const Spread figure = figures_of(points);
    table.print({series.name, microseconds(figure.least), microseconds(figure.middle),
                 microseconds(raws_of(points).middle), number(median_ratio(points), 2)});
  }
  std::puts("");
}

int run_all(const std::vector<int>& sizes, const std::string& svg) {
  constexpr int kMostWithKernels = 8;
  OpenMpi mpi(OpenMpiWorker::Library::kMpi, {"barriers"});
  OpenMpi shmem(OpenMpiWorker::Library::kShmem, {"barriers"}, mpi.installed());
  std::puts(
      "Each figure: least and median of the repeats in which the raw round trip of a cache line, measured right\n"
      "before and after, stayed the same within a fifth; and its median ratio to that round trip or, if there are\n"
      "more PEs than processors, to the time in which each PE yields once (sched_yield), measured at the same time.\n");
  chart::Plot plot =
      logarithmic_plot(fmt::format("Median time of a barrier, {} processors", own_processors()), "PEs", "microseconds");
  for (const int pes : sizes) {
    auto all = run_ours({pes, barrier_arguments(all_algorithms())});
    std::ranges::copy(mpi.run({pes, barrier_arguments({"MPI_Barrier (Open MPI)"})}), std::back_inserter(all));
    std::ranges::copy(shmem.run({pes, barrier_arguments({"shmem_barrier_all (Open MPI)"})}), std::back_inserter(all));
    print(pes, all, plot);
    if (pes <= kMostWithKernels) {
      print_kernel_barriers(pes);
    }
  }
  write_svg(svg, {plot});
  return mpi.good() && shmem.good() ? 0 : 1;
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
