// SPDX-License-Identifier: Apache-2.0
// Measures the ways of libshmem's collectives on this machine and writes the table that it chooses them by.
#include <cstdio>
#include <sstream>

#include "bench/jobs.hpp"
#include "bench/table_file.hpp"
#include "bench/tuning.hpp"

namespace bench {
namespace {

constexpr const char* kRepeats = "5";

/// Has all calls go one way.
std::string forcing_table(const base::TempFolder& folder, const shmem::CollectiveLimits& limits) {
  std::string file = folder.file("table");
  std::ofstream out(file);
  out << shmem::kCollectiveFormat << "\n";
  for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
    for (const bool oversubscribed : {false, true}) {
      const shmem::CollectiveRow row{.collective = shmem::Collective{static_cast<int>(i)},
                                     .teams = {.oversubscribed = oversubscribed},
                                     .limits = limits};
      out << to_string(row) << "\n";
    }
  }
  return file;
}

using Times = std::map<std::uint64_t, double>;

void measure_way(const base::TempFolder& folder, int pes, const shmem::CollectiveLimits& limits,
                 Times MeasuredCollective::*way, std::vector<MeasuredCollective>& all) {
  const std::string table = forcing_table(folder, limits);
  for (const Series& series :
       run_ours(folder, "rma_worker", pes, {kRepeats, "tuning"}, {"SHMEM_COLLECTIVE_TUNING=" + table})) {
    std::istringstream words(series.name);
    std::string name;
    std::uint64_t bytes = 0;
    words >> name >> bytes;
    for (MeasuredCollective& measured : all) {
      const auto index = static_cast<std::size_t>(measured.collective);
      // A block of less than a word cannot be measured.
      const bool too_small = measured.collective == shmem::Collective::kAlltoall && bytes / 8 < std::uint64_t(pes);
      const bool splits =
          measured.collective == shmem::Collective::kBroadcast || measured.collective == shmem::Collective::kReduce;
      const bool wanted = !too_small && (way != &MeasuredCollective::scatter_allgather || splits);
      if (name == shmem::kCollectiveNames[index] && wanted) {
        const auto points = series.usable();
        // The limits of alltoall count the blocks for the others.
        const bool alltoall = measured.collective == shmem::Collective::kAlltoall;
        (measured.*way)[alltoall ? bytes - bytes / static_cast<std::uint64_t>(pes) : bytes] = median_ratio(points);
        std::fprintf(stderr, "%4d PEs  %-20s %-24s %12.3f us\n", pes, series.name.c_str(), to_string(limits).c_str(),
                     figures_of(points).middle / 1e3);
      }
    }
  }
}

std::vector<MeasuredCollective> measure(const base::TempFolder& folder, int pes) {
  std::vector<MeasuredCollective> all;
  for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
    // A scan is a reduction that ends earlier; what was not measured goes by the built-in table.
    const shmem::Collective collective{static_cast<int>(i)};
    if (collective != shmem::Collective::kScan) {
      all.push_back({.collective = collective, .pes = pes, .oversubscribed = pes > own_processors()});
    }
  }
  measure_way(folder, pes, {.eager = shmem::kEagerLimit}, &MeasuredCollective::eager, all);
  measure_way(folder, pes, {}, &MeasuredCollective::direct, all);
  measure_way(folder, pes, {.scatter_allgather = 0}, &MeasuredCollective::scatter_allgather, all);
  return all;
}

std::string tune(const std::vector<int>& sizes) {
  const base::TempFolder folder;
  std::vector<MeasuredCollective> all;
  for (const int pes : sizes) {
    const auto some = measure(folder, pes);
    all.insert(all.end(), some.begin(), some.end());
  }
  return make_collective_table(all, measured_by("tune_collective"));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::run_tuner({.name = "tune_collective",
                           .description = "Measures the algorithms of libshmem's collectives on this machine, which "
                                          "should be idle, and writes a table. Collectives use the table that "
                                          "SHMEM_COLLECTIVE_TUNING names.",
                           .variable = "SHMEM_COLLECTIVE_TUNING",
                           .sizes = {2, 4, 8},
                           .make = bench::tune},
                          argc, argv);
}
