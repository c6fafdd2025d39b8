// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/neighbour_levels.hpp"

#include <algorithm>

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

/// Groups of `units` (first members, then the number of members): the first members.
std::vector<int> make_groups(const std::vector<int>& units) {
  const auto count = units.size() - 1;
  const auto most = static_cast<std::size_t>(group_size(static_cast<int>(count)));
  const std::size_t groups = (count + most - 1) / most;
  const std::size_t size = (count + groups - 1) / groups;
  std::vector<int> firsts;
  for (std::size_t first = 0; first < count; first += size) {
    firsts.push_back(units[first]);
  }
  firsts.push_back(units.back());
  return firsts;
}

/// The index of the unit that contains a member.
int unit_of(const std::vector<int>& units, int member) {
  return static_cast<int>(std::ranges::upper_bound(units, member) - units.begin()) - 1;
}

}  // namespace

NeighbourLevels::NeighbourLevels(int members, int me) : members_(members), me_(me) {
  my_units_.push_back(me);
  largest_.push_back(1);
  std::vector<int> units;
  for (int i = 0; i <= members; ++i) {
    units.push_back(i);
  }
  while (static_cast<int>(units.size()) - 1 > kMostInGroup) {
    units = make_groups(units);
    my_units_.push_back(unit_of(units, me));
    int most = 0;
    for (std::size_t i = 0; i + 1 < units.size(); ++i) {
      most = std::max(most, units[i + 1] - units[i]);
    }
    largest_.push_back(most);
    firsts_.push_back(units);
  }
}

NeighbourLevels::Group NeighbourLevels::group(int level) const {
  if (level == last()) {
    return {0, units(level)};
  }
  const auto index = [&](int member) { return level == 0 ? member : unit_of(of(level), member); };
  const int mine = my_unit(level + 1);
  return {index(first(level + 1, mine)), index(first(level + 1, mine + 1))};
}

}  // namespace shmem
