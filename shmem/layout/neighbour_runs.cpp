// SPDX-License-Identifier: Apache-2.0
#include "shmem/layout/neighbour_runs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shmem {
namespace {

/// One run if there would be fewer than two members to a run.
template <typename Same>
std::vector<int> runs_of(int members, Same same) {
  std::vector<int> runs{0};
  for (int i = 1; i < members; ++i) {
    if (!same(i - 1, i)) {
      runs.push_back(i);
    }
  }
  if (2 * static_cast<int>(runs.size()) > members) {
    runs = {0};
  }
  runs.push_back(members);
  return runs;
}

}  // namespace

NeighbourRuns::NeighbourRuns(std::span<const CpuLocation> members) {
  const int size = static_cast<int>(members.size());
  const auto at = [&](int i) { return members[static_cast<std::size_t>(i)]; };
  const bool sockets = std::ranges::none_of(members, [](const CpuLocation& each) { return each.socket == 0; });
  const bool caches = std::ranges::none_of(members, [](const CpuLocation& each) { return each.cache == 0; });
  sockets_ = runs_of(size, [&](int a, int b) { return !sockets || at(a).socket == at(b).socket; });
  // A socket has caches of its own.
  caches_ = runs_of(size, [&](int a, int b) {
    return (!sockets || at(a).socket == at(b).socket) && (!caches || at(a).cache == at(b).cache);
  });
  if (caches_.size() < sockets_.size()) {
    caches_ = sockets_;  // PEs take the caches of each socket in turn
  }
}

NeighbourRuns NeighbourRuns::of_team(const Job& job, const TeamMap& map) {
  std::vector<CpuLocation> members;
  for (int i = 0; i < map.size && !job.locations.empty(); ++i) {
    members.push_back(job.locations[static_cast<std::size_t>(map.pe(i))]);
  }
  return members.empty() ? NeighbourRuns(map.size) : NeighbourRuns(members);
}

std::string NeighbourRuns::text() const {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (std::size_t cache = 0, socket = 0; cache + 1 < caches_.size(); ++cache) {
    if (cache == kMost) {
      return text + ", ...";
    }
    const int first = caches_[cache];
    const int last = caches_[cache + 1] - 1;
    const bool begins = first == sockets_[socket];
    text += begins ? fmt::format("{}socket {}: PEs ", socket > 0 ? "; " : "", socket) : ", ";
    socket += begins ? 1 : 0;
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return text;
}

std::size_t NeighbourRuns::run_of(std::span<const int> runs, int member) {
  return static_cast<std::size_t>(std::ranges::upper_bound(runs, member) - runs.begin()) - 1;
}

}  // namespace shmem
