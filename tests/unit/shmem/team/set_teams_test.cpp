// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/set_teams.hpp"

#include <gtest/gtest.h>

#include <barrier>

#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::SetName;
using shmem::SetTeams;
using shmem::TeamMap;
using shmem_test::run_job;

SetTeams table_of(Job& job) {
  return SetTeams(job, [](shmem::Team& team) { return team.agree_on_algorithm({}); });
}

/// The set's team is made by all PEs of `map`, which `door` is for.
const SetTeams::Entry* create(SetTeams& sets, const SetName& name, const TeamMap& map, std::barrier<>& door) {
  const auto made = sets.create(name, {.here = map, .world = map}, [&door]() -> shmem::Result<void> {
    door.arrive_and_wait();
    return {};
  });
  EXPECT_TRUE(made);
  return made ? *made : nullptr;
}

TEST(SetTeams, AreEnabledIfAllPesMakeOneCallAtATime) {
  for (const int other : {-1, 0, 2}) {
    run_job(3, [other](Job& job) {
      SetTeams sets = table_of(job);
      EXPECT_FALSE(sets.is_enabled());
      sets.announce(job.me != other);
      ASSERT_TRUE(job.bootstrap->barrier());
      sets.settle();
      EXPECT_EQ(sets.is_enabled(), other < 0);
      sets.disable();
      EXPECT_FALSE(sets.is_enabled());
    });
  }
}

TEST(SetTeams, MakeOneTeamForASetAndRememberIt) {
  std::barrier<> four(4);
  std::barrier<> two(2);
  run_job(4, [&](Job& job) {
    SetTeams sets = table_of(job);
    const SetName all{0, 0, 4};
    EXPECT_EQ(sets.find(all), nullptr);
    const auto* made = create(sets, all, {0, 1, 4}, four);
    ASSERT_NE(made, nullptr);
    ASSERT_NE(made->team, nullptr);
    EXPECT_EQ(made->team->me(), job.me);
    EXPECT_GE(made->team->slot(), shmem::kMaxTeams);  // none of the program's
    const SetName odd{1, 1, 2};
    if (job.me % 2 != 0) {
      ASSERT_EQ(sets.find(odd), nullptr);
      const auto* part = create(sets, odd, {1, 2, 2}, two);
      ASSERT_NE(part, nullptr);
      ASSERT_NE(part->team, nullptr);
      EXPECT_NE(part->team->slot(), made->team->slot());
      EXPECT_EQ(part->team->size(), 2);
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(part->team->sync());
      }
      EXPECT_EQ(sets.find(odd), part);
    }
    EXPECT_EQ(sets.find(all), made);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(made->team->sync());
    }
    four.arrive_and_wait();
    sets.clear();
    EXPECT_EQ(sets.find(all), nullptr);
  });
}

TEST(SetTeams, LackASlotOnAllMembersAlike) {
  std::barrier<> door(2);
  run_job(2, [&](Job& job) {
    SetTeams sets = table_of(job);
    if (job.me == 0) {
      const shmem::TeamSlots slots(job);
      for (int slot = shmem::kMaxTeams + 1; slot < shmem::kTeamSlots; ++slot) {
        slots.set_taken(1, slot, true);
      }
    }
    door.arrive_and_wait();
    const auto* first = create(sets, {0, 0, 2}, {0, 1, 2}, door);
    ASSERT_NE(first, nullptr);
    EXPECT_NE(first->team, nullptr);
    const SetName other{0, 5, 2};
    const auto* second = create(sets, other, {0, 1, 2}, door);
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(second->team, nullptr);
    EXPECT_EQ(sets.find(other), second);
    door.arrive_and_wait();
  });
}

}  // namespace
