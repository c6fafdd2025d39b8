// SPDX-License-Identifier: Apache-2.0
// Measures the software barriers of libshmem on this machine and writes the table that it chooses them by.
#include <cstdio>

#include "bench/jobs.hpp"
#include "bench/table_file.hpp"
#include "bench/tuning.hpp"

namespace bench {
namespace {

/// Algorithms that are measured in one job, with the same environment.
struct Group {
  std::vector<std::string> algorithms;
  std::string parameter{};  // in the table, after the algorithm
  std::vector<std::string> environment{};
};

std::vector<Group> groups_for(int pes) {
  std::vector<Group> groups(1);
  for (const auto& spec : shmem::kAlgorithms) {
    // adaptive always stands for another algorithm.
    if (spec.algorithm != shmem::Algorithm::kAdaptive) {
      groups.front().algorithms.emplace_back(spec.name);
    }
  }
  for (const int radix : {2, 4}) {
    const std::string number = std::to_string(radix);
    groups.push_back({{"npu_v2"}, " radix=" + number, {"SHMEM_BARRIER_RADIX=" + number}});
  }
  for (int group = 4; group < pes; group *= 4) {
    const std::string number = std::to_string(group);
    groups.push_back({{"hierarchical"}, " group=" + number, {"SHMEM_BARRIER_GROUP=" + number}});
  }
  return groups;
}

Measured measure(int pes) {
  Measured measured{.pes = pes, .oversubscribed = pes > own_processors()};
  for (const Group& group : groups_for(pes)) {
    for (const Series& series : run_ours({pes, barrier_arguments(group.algorithms), group.environment})) {
      const auto points = series.usable();
      measured.candidates.push_back({series.name + group.parameter, median_ratio(points)});
      std::fprintf(stderr, "%4d PEs  %-24s %10.3f us\n", pes, measured.candidates.back().way.c_str(),
                   figures_of(points).middle / 1e3);
    }
  }
  std::fprintf(stderr, "%4d PEs: %s\n", pes, best_way(measured).c_str());
  return measured;
}

std::string tune(const std::vector<int>& sizes, const std::string& comment) {
  std::vector<Measured> all;
  for (const int pes : sizes) {
    all.push_back(measure(pes));
  }
  return make_table(all, comment);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_tuner({.name = "tune_barrier",
                           .description = "Measures the software barriers of libshmem on this machine, which should be "
                                          "idle, and writes a table. SHMEM_BARRIER_ALGORITHM=auto uses the table that "
                                          "SHMEM_BARRIER_TUNING names.",
                           .variable = "SHMEM_BARRIER_TUNING",
                           .sizes = {2, 4, 8, 16, 32, 64},
                           .make = bench::tune},
                          argc, argv);
}
