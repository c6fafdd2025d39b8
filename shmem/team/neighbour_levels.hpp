// SPDX-License-Identifier: Apache-2.0
// How many members pass on small data: in groups, and groups of groups.
#pragma once

#include <vector>

namespace shmem {

/// With more members than this, small data takes several steps.
constexpr int kMostOneStep = 32;

/// Levels of a team, seen from one member. At level 0 each member is a unit; the units of a level are in groups of
/// neighbours, each of which is a unit of the next level, led by its first member. The last level has up to
/// kMostInGroup units, which are in no group. So what all members have takes as many steps as there are levels, and in
/// each of them a member reads from up to kMostInGroup others.
///
/// Constant; the same on all members but for group().
class NeighbourLevels {
 public:
  static constexpr int kMostInGroup = 16;

  NeighbourLevels(int members, int me);

  [[nodiscard]] int members() const { return members_; }
  /// The number of levels whose units are in groups: the last level has this number.
  [[nodiscard]] int last() const { return static_cast<int>(firsts_.size()); }
  [[nodiscard]] int units(int level) const { return level == 0 ? members_ : static_cast<int>(of(level).size()) - 1; }
  /// The first member of a unit, which leads it; of unit units(level): the number of members.
  [[nodiscard]] int first(int level, int unit) const {
    return level == 0 ? unit : of(level)[static_cast<std::size_t>(unit)];
  }
  /// The unit that contains this member.
  [[nodiscard]] int my_unit(int level) const { return my_units_[static_cast<std::size_t>(level)]; }
  [[nodiscard]] bool leads_unit(int level) const { return first(level, my_unit(level)) == me_; }
  /// The most members of any unit.
  [[nodiscard]] int largest(int level) const { return largest_[static_cast<std::size_t>(level)]; }

  struct Group {
    int begin, end;  // units
  };
  /// The group that contains this member's unit; at the last level, all units.
  [[nodiscard]] Group group(int level) const;

 private:
  [[nodiscard]] const std::vector<int>& of(int level) const { return firsts_[static_cast<std::size_t>(level) - 1]; }

  int members_;
  int me_;
  std::vector<std::vector<int>> firsts_;  // by level, from 1 on: of each unit, then the number of members
  std::vector<int> my_units_, largest_;   // by level
};

}  // namespace shmem
