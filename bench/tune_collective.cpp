// SPDX-License-Identifier: Apache-2.0
// Measures the ways of libshmem's collectives on this machine and writes the table that it chooses them by.
#include <algorithm>
#include <cstdio>
#include <sstream>

#include "bench/jobs.hpp"
#include "bench/table_file.hpp"
#include "bench/tuning.hpp"

namespace bench {
namespace {

constexpr const char* kRepeats = "5";

/// A table that has all calls go one way, as far as it goes.
std::string forcing_table(const shmem::CollectiveLimits& limits) {
  std::string text = std::string(shmem::kCollectiveFormat) + "\n";
  for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
    const shmem::Collective collective{static_cast<int>(i)};
    shmem::CollectiveLimits own = limits;
    own.eager = std::min<std::uint64_t>(own.eager, shmem::eager_limit(collective));
    for (const bool oversubscribed : {false, true}) {
      const shmem::CollectiveRow row{
          .collective = collective, .teams = {.oversubscribed = oversubscribed}, .limits = own};
      text += to_string(row) + "\n";
    }
  }
  return text;
}

using Times = std::map<std::uint64_t, double>;
using Way = Times MeasuredCollective::*;

/// Whether a collective has this way for so many bytes.
bool has(shmem::Collective collective, Way way, int pes, std::uint64_t bytes) {
  if (collective == shmem::Collective::kAlltoall && bytes / 8 < std::uint64_t(pes)) {
    return false;  // a block of less than a word cannot be measured
  }
  return way != &MeasuredCollective::scatter_allgather || collective == shmem::Collective::kBroadcast ||
         collective == shmem::Collective::kReduce;
}

void measure_way(int pes, const shmem::CollectiveLimits& limits, Way way, std::vector<MeasuredCollective>& all) {
  const base::TempFolder folder;
  const std::string table = folder.file("table");
  write_file(table, forcing_table(limits));
  for (const Series& series : run_ours({pes, {"tuning", kRepeats}, {"SHMEM_COLLECTIVE_TUNING=" + table}})) {
    std::istringstream words(series.name);
    std::string name;
    std::uint64_t bytes = 0;
    words >> name >> bytes;
    const auto measured = std::ranges::find_if(all, [&](const MeasuredCollective& one) {
      return name == shmem::kCollectiveNames[static_cast<std::size_t>(one.collective)];
    });
    if (measured == all.end() || !has(measured->collective, way, pes, bytes)) {
      continue;
    }
    const auto points = series.usable();
    // The limits of alltoall count the blocks for the others.
    const bool alltoall = measured->collective == shmem::Collective::kAlltoall;
    ((*measured).*way)[alltoall ? bytes - bytes / static_cast<std::uint64_t>(pes) : bytes] = median_ratio(points);
    std::fprintf(stderr, "%4d PEs  %-20s %-24s %12.3f us\n", pes, series.name.c_str(), to_string(limits).c_str(),
                 figures_of(points).middle / 1e3);
  }
}

std::vector<MeasuredCollective> measure(int pes) {
  std::vector<MeasuredCollective> all;
  for (std::size_t i = 0; i < shmem::kCollectives; ++i) {
    // A scan is a reduction that ends earlier; what was not measured goes by the built-in table.
    const shmem::Collective collective{static_cast<int>(i)};
    if (collective != shmem::Collective::kScan) {
      all.push_back({.collective = collective, .pes = pes, .oversubscribed = pes > own_processors()});
    }
  }
  measure_way(pes, {.eager = shmem::kNever}, &MeasuredCollective::eager, all);
  measure_way(pes, {}, &MeasuredCollective::direct, all);
  measure_way(pes, {.scatter_allgather = 0}, &MeasuredCollective::scatter_allgather, all);
  return all;
}

std::string tune(const std::vector<int>& sizes, const std::string& comment) {
  std::vector<MeasuredCollective> all;
  for (const int pes : sizes) {
    const auto some = measure(pes);
    all.insert(all.end(), some.begin(), some.end());
  }
  return make_collective_table(all, comment);
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
