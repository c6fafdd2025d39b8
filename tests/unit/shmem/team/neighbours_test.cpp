// SPDX-License-Identifier: Apache-2.0
// Which members of a team form groups, and groups of groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shmem/layout/neighbour_runs.hpp"
#include "shmem/team/neighbour_levels.hpp"

namespace {

using shmem::CpuLocation;
using shmem::NeighbourLevels;
using shmem::NeighbourRuns;
using testing::ElementsAre;

/// Members that fill caches of `each` one after the other, `caches` to a socket.
std::vector<CpuLocation> filled(int members, int each, int caches) {
  std::vector<CpuLocation> all;
  for (int i = 0; i < members; ++i) {
    all.push_back({.cache = 1 + i / each, .socket = 1 + i / each / caches});
  }
  return all;
}

TEST(NeighbourRuns, AreCachesWithinSockets) {
  const NeighbourRuns runs(filled(12, 3, 2));
  EXPECT_THAT(runs.caches(), ElementsAre(0, 3, 6, 9, 12));
  EXPECT_THAT(runs.sockets(), ElementsAre(0, 6, 12));
  EXPECT_TRUE(runs.several());
  EXPECT_EQ(runs.text(), "socket 0: PEs 0-2, 3-5; socket 1: PEs 6-8, 9-11");
  EXPECT_EQ(NeighbourRuns::run_of(runs.caches(), 8), 2U);
  EXPECT_EQ(NeighbourRuns::run_of(runs.caches(), 9), 3U);
}

TEST(NeighbourRuns, AreOneWhereNothingIsKnownOrShared) {
  std::vector<CpuLocation> in_turn;
  for (int i = 0; i < 8; ++i) {
    in_turn.push_back({.cache = 1 + i % 4, .socket = 1});
  }
  std::vector<CpuLocation> one_unknown = filled(8, 2, 2);
  one_unknown[5] = {};
  for (const auto& members : {in_turn, one_unknown, filled(8, 8, 1), std::vector<CpuLocation>(8)}) {
    const NeighbourRuns runs(members);
    EXPECT_THAT(runs.caches(), ElementsAre(0, 8));
    EXPECT_THAT(runs.sockets(), ElementsAre(0, 8));
    EXPECT_FALSE(runs.several());
  }
}

TEST(NeighbourRuns, AreSocketsIfOnlyTheseAreKnown) {
  std::vector<CpuLocation> members = filled(8, 2, 2);
  for (CpuLocation& member : members) {
    member.cache = 0;
  }
  EXPECT_THAT(NeighbourRuns(members).caches(), ElementsAre(0, 4, 8));
  EXPECT_THAT(NeighbourRuns(members).sockets(), ElementsAre(0, 4, 8));
}

/// The properties that the calls rely on: every level partitions the level below, in order, and is the same for all.
void expect_sound(int members, const NeighbourRuns& runs) {
  const NeighbourLevels first(members, 0, runs);
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
    const NeighbourLevels levels(members, me, runs);
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
    expect_sound(members, {});
  }
  expect_sound(708, NeighbourRuns(filled(708, 8, 8)));
  expect_sound(708, NeighbourRuns(filled(708, 24, 2)));
  expect_sound(500, NeighbourRuns(filled(500, 2, 100)));
  expect_sound(300, NeighbourRuns(filled(300, 56, 1)));
}

TEST(NeighbourLevels, AreLogarithmicallyMany) {
  const auto last = [](int members) { return NeighbourLevels(members, 0, {}).last(); };
  EXPECT_EQ(last(16), 0);
  EXPECT_EQ(last(33), 1);
  EXPECT_EQ(last(256), 1);
  EXPECT_EQ(last(708), 2);
  EXPECT_EQ(last(4096), 2);
  EXPECT_EQ(last(4097), 3);
}

TEST(NeighbourLevels, DoNotMixCaches) {
  const NeighbourLevels levels(64, 20, NeighbourRuns(filled(64, 6, 4)));
  EXPECT_EQ(levels.first(1, levels.my_unit(1)), 18);
  EXPECT_EQ(levels.first(1, levels.my_unit(1) + 1), 24);
  // Groups of level 1 are within sockets of 24 members each.
  const NeighbourLevels large(708, 700, NeighbourRuns(filled(708, 6, 4)));
  for (int unit = 0; unit < large.units(2); ++unit) {
    EXPECT_EQ(large.first(2, unit) % 24, 0) << unit;
  }
}

}  // namespace
