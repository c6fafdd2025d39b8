// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/neighbour_levels.hpp"

#include <algorithm>
#include <span>

namespace shmem {
namespace {

/// How many units each group needs for the fewest levels, and for groups of about the same size at all of them.
int group_size(int units) {
  const auto reach = [](int size, int levels) {
    long all = 1;
    for (int i = 0; i < levels; ++i) {
      all *= size;
    }
    return all;
  };
  int levels = 1;
  while (reach(NeighbourLevels::kMostInGroup, levels) < units) {
    ++levels;
  }
  int size = 2;
  while (reach(size, levels) < units) {
    ++size;
  }
  return size;
}

/// Groups of `units` (first members, then the number of members), none of which is in two runs: the first members.
std::vector<int> make_groups(std::span<const int> units, std::span<const int> runs) {
  const auto count = units.size() - 1;
  const auto most = static_cast<std::size_t>(group_size(static_cast<int>(count)));
  std::vector<int> firsts;
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    end = begin + 1;
    if (runs.empty()) {
      end = count;
    } else {
      const auto run = NeighbourRuns::run_of(runs, units[begin]);
      while (end < count && units[end] < runs[run + 1]) {
        ++end;
      }
    }
    const std::size_t groups = (end - begin + most - 1) / most;
    const std::size_t size = (end - begin + groups - 1) / groups;
    for (std::size_t first = begin; first < end; first += size) {
      firsts.push_back(units[first]);
    }
  }
  firsts.push_back(units.back());
  return firsts;
}

}  // namespace

NeighbourLevels::NeighbourLevels(int members, int me, const NeighbourRuns& runs) : members_(members), me_(me) {
  my_units_.push_back(me);
  largest_.push_back(1);
  std::vector<int> units;
  for (int i = 0; i <= members; ++i) {
    units.push_back(i);
  }
  std::span<const int> borders = runs.caches();
  while (static_cast<int>(units.size()) - 1 > kMostInGroup) {
    std::vector<int> next = make_groups(units, borders);
    if (2 * next.size() > units.size() + 1) {
      next = make_groups(units, {});  // most runs are a single unit by now
    }
    units = next;
    my_units_.push_back(static_cast<int>(NeighbourRuns::run_of(units, me)));
    int most = 0;
    for (std::size_t i = 0; i + 1 < next.size(); ++i) {
      most = std::max(most, next[i + 1] - next[i]);
    }
    largest_.push_back(most);
    firsts_.push_back(std::move(next));
    borders = runs.sockets();
  }
}

NeighbourLevels::Group NeighbourLevels::group(int level) const {
  if (level == last()) {
    return {0, units(level)};
  }
  const auto index = [&](int member) {
    return level == 0 ? member : static_cast<int>(NeighbourRuns::run_of(of(level), member));
  };
  const int mine = my_unit(level + 1);
  return {index(first(level + 1, mine)), index(first(level + 1, mine + 1))};
}

}  // namespace shmem
