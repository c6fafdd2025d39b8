// SPDX-License-Identifier: Apache-2.0
// Which members of a team form groups, and groups of groups.
#include <gtest/gtest.h>

#include "shmem/team/neighbour_levels.hpp"

namespace {

using shmem::NeighbourLevels;

/// The properties that the calls rely on: every level partitions the level below, in order, and is the same for all.
void expect_sound(int members) {
  const NeighbourLevels first(members, 0);
  ASSERT_LE(first.units(first.last()), NeighbourLevels::kMostInGroup);
  for (int level = 0; level <= first.last(); ++level) {
    ASSERT_EQ(first.first(level, 0), 0);
    ASSERT_EQ(first.first(level, first.units(level)), members);
    int largest = 0;
    for (int unit = 0; unit < first.units(level); ++unit) {
      ASSERT_LT(first.first(level, unit), first.first(level, unit + 1));
      largest = std::max(largest, first.first(level, unit + 1) - first.first(level, unit));
    }
    ASSERT_EQ(first.largest(level), largest);
  }
  for (int me = 0; me < members; ++me) {
    const NeighbourLevels levels(members, me);
    ASSERT_EQ(levels.last(), first.last());
    for (int level = 0; level < levels.last(); ++level) {
      const NeighbourLevels::Group group = levels.group(level);
      const int above = levels.my_unit(level + 1);
      ASSERT_EQ(levels.first(level, group.begin), first.first(level + 1, above));
      ASSERT_EQ(levels.first(level, group.end), first.first(level + 1, above + 1));
      ASSERT_LE(group.end - group.begin, NeighbourLevels::kMostInGroup);
      ASSERT_LE(group.begin, levels.my_unit(level));
      ASSERT_LT(levels.my_unit(level), group.end);
      ASSERT_LE(levels.first(level, levels.my_unit(level)), me);
      ASSERT_LT(me, levels.first(level, levels.my_unit(level) + 1));
    }
    ASSERT_EQ(levels.leads_unit(0), true);
  }
}

TEST(NeighbourLevels, PartitionTeamsOfAnySize) {
  for (const int members : {17, 33, 40, 64, 100, 256, 257, 708, 1000, 4096}) {
    expect_sound(members);
  }
}

TEST(NeighbourLevels, AreLogarithmicallyMany) {
  const auto last = [](int members) { return NeighbourLevels(members, 0).last(); };
  EXPECT_EQ(last(16), 0);
  EXPECT_EQ(last(33), 1);
  EXPECT_EQ(last(256), 1);
  EXPECT_EQ(last(708), 2);
  EXPECT_EQ(last(4096), 2);
  EXPECT_EQ(last(4097), 3);
}

}  // namespace
