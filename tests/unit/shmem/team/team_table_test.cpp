// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team_table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::SplitRequest;
using shmem::Team;
using shmem::TeamCall;
using shmem::TeamMap;
using shmem::TeamTable;
using shmem_test::run_job;

shmem::Result<void> no_device(Team& /*team*/) {
  return {};
}

/// The request that makes a team of these PEs of the world.
SplitRequest among(const Job& job, const TeamMap& map) {
  SplitRequest request{{TeamCall::kStrided, map.start, map.stride, map.size}};
  if (map.member(job.me)) {
    request.map = map;
  }
  return request;
}

TEST(TeamIds, DoNotRepeatAfterSixtyFiveThousand) {
  std::set<std::uint32_t> seen{0};
  for (const int pe : {0, 1, 708}) {
    shmem::TeamIds ids(pe, 709);
    for (int i = 0; i < 200'000; ++i) {
      const auto id = ids.next();
      ASSERT_LT(id.number, std::uint32_t{1} << 30);
      ASSERT_TRUE(seen.insert(id.number).second) << id.number;
      ASSERT_FALSE(id.repeated);
    }
  }
}

TEST(TeamIds, SayWhenTheyAreRepeated) {
  for (const int pe : {0, 1}) {
    shmem::TeamIds ids(pe, 1 << 26);  // 16 ids for each PE
    std::set<std::uint32_t> seen;
    for (int i = 0; i < 100; ++i) {
      const auto id = ids.next();
      ASSERT_TRUE(seen.insert(id.number).second != id.repeated) << i;
    }
  }
}

TEST(TeamTable, MembersUseTheAlgorithmOfTheFirst) {
  run_job(3, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, [&job](Team& team) {
      return team.agree_on_algorithm({job.me == 0 ? shmem::Algorithm::kBasic : shmem::Algorithm::kTournament});
    });
    ASSERT_TRUE(teams.make_predefined());
    for (const int handle : {shmem::kWorldTeam, shmem::kSharedTeam}) {
      EXPECT_STREQ(teams.find(handle)->algorithm(), "basic");
      EXPECT_TRUE(teams.find(handle)->sync());
    }
  });
}

TEST(TeamTable, SplitsStridedTeamsThatSynchroniseIndependently) {
  run_job(6, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const TeamMap even{0, 2, 3};
    const auto handle = teams.split(world, among(job, even));
    ASSERT_TRUE(handle);
    if (job.me % 2 != 0) {
      EXPECT_EQ(*handle, -1);
    } else {
      Team& team = *teams.find(*handle);
      EXPECT_EQ(team.me(), job.me / 2);
      EXPECT_EQ(team.size(), 3);
      for (int i = 0; i < 50; ++i) {
        ASSERT_TRUE(team.sync());
      }
      EXPECT_TRUE(teams.destroy(*handle));
      EXPECT_EQ(teams.find(*handle), nullptr);
    }
    ASSERT_TRUE(world.sync());
  });
}

TEST(TeamTable, PesWithDifferentHistoriesAgreeOnASlot) {
  run_job(4, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const auto split = [&](const TeamMap& map) { return teams.split(world, among(job, map)).value(); };
    const TeamMap left{0, 1, 2};
    const int first = split(left);
    split(left);
    const int pair = split({1, 1, 2});  // PE 1 has two more teams than PE 2
    std::atomic_ref<std::uint64_t> mine(*reinterpret_cast<std::uint64_t*>(job.memory.heap(job.me)));
    mine.store(static_cast<std::uint64_t>(pair) + 1);
    ASSERT_TRUE(world.sync());
    if (job.me == 1 || job.me == 2) {
      const int other = 3 - job.me;
      EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(job.memory.heap(other)), static_cast<std::uint64_t>(pair + 1));
      EXPECT_TRUE(teams.find(pair)->sync());
    }
    if (job.me < 2) {
      EXPECT_TRUE(teams.find(first)->sync());
    }
    ASSERT_TRUE(world.sync());
  });
}

TEST(TeamTable, OtherMembersCanReuseASlotWithoutHanging) {
  run_job(4, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    for (int round = 0; round < 60; ++round) {
      // After teams of different sizes the words of the slot have different counts on different PEs.
      const TeamMap map{round % 2, 1, 2 + (round / 2) % 2};
      const auto handle = teams.split(world, among(job, map));
      ASSERT_TRUE(handle);
      if (*handle >= 0) {
        for (int i = 0; i < round % 4; ++i) {
          ASSERT_TRUE(teams.find(*handle)->sync());
        }
        ASSERT_TRUE(teams.destroy(*handle));
      }
    }
  });
}

TEST(TeamTable, AReusedSlotKeepsTheCounterThatALateMemberReads) {
  run_job(3, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const auto split = [&](Team& parent, const TeamMap& map) { return teams.split(parent, among(job, map)).value(); };
    const int apart = split(world, {0, 2, 2});
    const int first = split(world, {0, 1, 2});
    constexpr int kSlot = 3;  // after the world, the PEs that share memory, and `apart`
    if (job.me < 2) {
      EXPECT_EQ(first, kSlot);
      ASSERT_TRUE(teams.find(first)->sync());  // by a central counter, the default
      ASSERT_TRUE(teams.destroy(first));
    }
    // PE 1 may still read the counter of PE 0 while PE 0 makes a team with PE 2.
    const auto& counter = job.team_sync(kSlot, 0).counter.value;
    const std::uint64_t before = counter.load();
    if (job.me != 1) {
      EXPECT_EQ(split(*teams.find(apart), {0, 2, 2}), kSlot);
    }
    if (job.me == 0) {
      EXPECT_GE(before, std::uint64_t{1} << shmem::kArrivalBits);
      EXPECT_GE(counter.load(), before);
    }
  });
}

TEST(TeamTable, RowsAndColumnsOfOnePeerGroupAreMadeAtOnce) {
  run_job(6, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    const TeamMap row{job.me / 3 * 3, 1, 3};
    const auto handle = teams.split(*teams.find(shmem::kWorldTeam), {{TeamCall::kRows, 0, 1, 3}, {}, row});
    ASSERT_TRUE(handle);
    EXPECT_EQ(teams.find(*handle)->me(), job.me % 3);
    EXPECT_TRUE(teams.find(*handle)->sync());
  });
}

TEST(TeamTable, NoPeGetsATeamIfOneHasNoFreeSlot) {
  run_job(3, [&](Job& job) {
    TeamTable teams(job, no_device);
    if (job.me == 1) {
      for (auto& word : job.metadata(job.me).taken_teams) {
        word = ~std::uint64_t{0};
      }
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    // PE 2 would not be a member, but gets the error too.
    const auto handle = teams.split(world, among(job, TeamMap{0, 1, 2}));
    ASSERT_FALSE(handle);
    EXPECT_EQ(handle.error().code, std::errc::no_buffer_space);
    // The rows of PEs 0 and 2 have free slots, but all PEs get the same result.
    const auto row = teams.split(world, {{TeamCall::kRows, 0, 1, 1}, {}, TeamMap{job.me, 1, 1}});
    ASSERT_FALSE(row);
    EXPECT_NE(row.error().text.find(job.me == 1 ? "no team slot" : "PE 1 refuses the new team"), std::string::npos)
        << row.error().text;
    EXPECT_TRUE(world.sync());
  });
}

TEST(TeamTable, PesThatSplitDifferentlyGetTheArgumentsOfEach) {
  run_job(3, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const auto handle = teams.split(world, among(job, TeamMap{0, 1, job.me == 2 ? 3 : 2}));
    ASSERT_FALSE(handle);
    EXPECT_EQ(handle.error().code, std::errc::invalid_argument);
    for (const char* part :
         {"team 0", "PE 0 asks for start 0, stride 1, size 2", "PE 2 asks for start 0, stride 1, size 3"}) {
      EXPECT_NE(handle.error().text.find(part), std::string::npos) << handle.error().text;
    }
    const auto next = teams.split(world, among(job, TeamMap{0, 1, 3}));
    ASSERT_TRUE(next) << "the parent team must still work";
    EXPECT_TRUE(teams.find(*next)->sync());
  });
}

TEST(TeamTable, ASplitThatOnePeRefusesFailsOnAll) {
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    // Only PE 1 has wrong arguments. PE 0 must not wait for it.
    shmem::SplitRequest request = among(job, TeamMap{0, 1, 2});
    if (job.me == 1) {
      request.call.size = 5;
      request.refusal = shmem::Error{std::errc::invalid_argument, "size 5"};
    }
    EXPECT_FALSE(teams.split(world, request));
    EXPECT_TRUE(world.sync());
  });
}

TEST(TeamTable, CoresReadTheTeamsOfTheirPe) {
  run_job(3, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    const auto& state = job.core_state();
    EXPECT_EQ(state.find(shmem::kWorldTeam).size, 0);
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    EXPECT_EQ(state.find(shmem::kWorldTeam).size, 3);
    EXPECT_EQ(state.find(shmem::kWorldTeam).me, job.me);
    const auto handle = teams.split(*teams.find(shmem::kWorldTeam), among(job, TeamMap{1, 1, 2}));
    ASSERT_TRUE(handle);
    EXPECT_EQ(state.find(*handle).size, job.me == 0 ? 0 : 2);
    if (job.me != 0) {
      EXPECT_EQ(state.find(*handle).start, 1);
      ASSERT_TRUE(teams.destroy(*handle));
      EXPECT_EQ(state.find(*handle).size, 0);
    }
    EXPECT_EQ(state.find(-1).size, 0);
    EXPECT_EQ(state.find(shmem::kMaxTeams).size, 0);
  });
}

/// A step of all PEs, executed in order. A PE takes part if it is a member of the team.
struct Step {
  enum { kMake, kSync, kDestroy } what;
  std::size_t team;        // index of the team that is made, synchronised or destroyed
  std::size_t parent = 0;  // the parent of a team that is made
  TeamMap map{};           // PEs of the world
};

/// Makes teams of random parents, strides and sizes, more than `live` of them at once, and synchronises them at random.
std::vector<Step> random_steps(int pes, std::size_t live, int steps, std::vector<TeamMap>& maps) {
  std::minstd_rand random(12345);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random()) % bound; };
  std::vector<Step> plan;
  std::vector<std::size_t> alive{0};
  maps = {TeamMap{0, 1, pes}};
  while (static_cast<int>(plan.size()) < steps || alive.size() <= live) {
    if (const auto choice = below(10); choice < 2 || alive.size() <= live) {
      const std::size_t parent = alive[below(alive.size())];
      const TeamMap& of = maps[parent];
      const int size = 1 + static_cast<int>(below(static_cast<std::size_t>(of.size)));
      const int stride =
          size == 1 ? 1 : 1 + static_cast<int>(below(static_cast<std::size_t>((of.size - 1) / (size - 1))));
      const int start = static_cast<int>(below(static_cast<std::size_t>(of.size - (size - 1) * stride)));
      const TeamMap map{of.pe(start), of.stride * stride, size};
      plan.push_back({Step::kMake, maps.size(), parent, map});
      alive.push_back(maps.size());
      maps.push_back(map);
    } else if (choice < 3 && alive.size() > 1) {
      const auto at = 1 + below(alive.size() - 1);
      plan.push_back({Step::kDestroy, alive[at]});
      alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    } else {
      plan.push_back({Step::kSync, alive[below(alive.size())]});
    }
  }
  for (const std::size_t team : alive) {
    plan.push_back({Step::kSync, team});
  }
  return plan;
}

TEST(TeamTable, AThousandOverlappingTeamsAreIndependent) {
  constexpr int kPes = 6;
  const auto live = static_cast<std::size_t>(test_support::repeats(300, 1000));
  std::vector<TeamMap> maps;
  const auto plan = random_steps(kPes, live, static_cast<int>(live) * 4, maps);
  // entered[team * kPes + member]: the syncs of the team that the member has entered.
  std::vector<std::atomic<int>> entered(maps.size() * kPes);
  std::atomic<int> early{0};
  run_job(kPes, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    std::vector<int> handle(maps.size(), -1);
    handle[0] = shmem::kWorldTeam;
    for (const Step& step : plan) {
      if (step.what == Step::kMake && handle[step.parent] >= 0) {
        const auto made = teams.split(*teams.find(handle[step.parent]), among(job, step.map));
        ASSERT_TRUE(made) << made.error().text;
        handle[step.team] = *made;
      } else if (step.what == Step::kDestroy && handle[step.team] >= 0) {
        ASSERT_TRUE(teams.destroy(std::exchange(handle[step.team], -1)));
      } else if (step.what == Step::kSync && handle[step.team] >= 0) {
        Team& team = *teams.find(handle[step.team]);
        const auto first = entered.begin() + static_cast<std::ptrdiff_t>(step.team * kPes);
        const int round = first[team.me()].fetch_add(1, std::memory_order_relaxed) + 1;
        ASSERT_TRUE(team.sync());
        for (int i = 0; i < team.size(); ++i) {
          early += first[i].load(std::memory_order_relaxed) < round ? 1 : 0;
        }
      }
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(TeamTable, HasRoomForMoreThan2048TeamsAtOnce) {
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    TeamTable teams(job, no_device);
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    for (int i = 0; i < 2048; ++i) {
      ASSERT_TRUE(teams.split(world, among(job, TeamMap{0, 1, 2})));
    }
    EXPECT_TRUE(teams.destroy_all());
  });
}

}  // namespace
