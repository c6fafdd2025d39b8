// SPDX-License-Identifier: Apache-2.0
// Teams whose members are on several nodes, however these are placed.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <set>
#include <vector>

#include "shmem/team/spanning_team.hpp"
#include "shmem/team/team_table.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/thread_nodes.hpp"

namespace {

using shmem::Job;
using shmem::Nodes;
using shmem::SplitRequest;
using shmem::Team;
using shmem::TeamCall;
using shmem::TeamMap;
using shmem::TeamParts;
using shmem::TeamTable;
using shmem_test::nodes_of;
using shmem_test::run_nodes;

shmem::Result<void> without_device(Team& /*team*/) {
  return {};
}

/// The team of `map`, numbers of the world, or nullptr on PEs that are not in it.
shmem::Result<Team*> split(TeamTable& teams, const Job& job, Team& parent, const TeamMap& map) {
  SplitRequest request{{TeamCall::kStrided, map.start, map.stride, map.size}};
  if (map.member(job.world_me())) {
    request.map = map;
  }
  const auto slot = teams.split(parent, request);
  if (!slot) {
    return slot.error();
  }
  return *slot < 0 ? nullptr : teams.find(static_cast<std::size_t>(*slot));
}

TeamParts parts_by_node(const Nodes& nodes, const TeamMap& map) {
  return {nodes, map, [&](int pe) { return nodes.node_of[static_cast<std::size_t>(pe)]; }};
}

TEST(TeamParts, AreNodesIfTheMembersOfEachAreEvenlySpaced) {
  const TeamMap evens{0, 2, 4};
  for (const auto& node_of : {std::vector{0, 0, 0, 0, 1, 1, 1, 1}, std::vector{0, 0, 1, 1, 0, 0, 1, 1}}) {
    const TeamParts parts = parts_by_node(nodes_of(node_of, 0), evens);
    EXPECT_EQ(parts.count(), 2U);
    EXPECT_FALSE(parts.divide_a_node());
  }
}

TEST(TeamParts, DivideANodeWhereASpaceDiffers) {
  const TeamParts parts = parts_by_node(nodes_of({0, 0, 0, 1, 0, 0, 1}, 0), {0, 2, 4});
  const std::vector<std::vector<int>> expected{{0, 1}, {2}, {3}};
  EXPECT_EQ(parts.members(), expected) << "PEs 0, 2, 4 are the PEs 0, 2, 3 of their node";
  EXPECT_TRUE(parts.divide_a_node());
}

TEST(TeamParts, AreEvenlySpacedOnOneNodeEach) {
  std::minstd_rand random(3);
  const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> node_of(40);
    for (std::size_t pe = 2; pe < node_of.size(); ++pe) {
      node_of[pe] = below(2 + round % 3);
    }
    node_of[1] = 1;
    node_of[2] = 2;
    node_of[3] = 3;
    const Nodes nodes = nodes_of(node_of, 0);
    const int stride = 1 + below(5);
    TeamMap map{below(10), stride, 1 + below(29 / stride)};
    if (below(2) == 0) {
      map = {map.pe(map.size - 1), -stride, map.size};
    }
    const TeamParts parts = parts_by_node(nodes, map);
    std::set<int> seen;
    for (std::size_t i = 0; i < parts.count(); ++i) {
      const auto& members = parts.members()[i];
      const TeamMap here = shmem::map_on_node(nodes, map, members);
      ASSERT_EQ(here.size, static_cast<int>(members.size()));
      for (int j = 0; j < here.size; ++j) {
        const int member = members[static_cast<std::size_t>(j)];
        const auto pe = static_cast<std::size_t>(map.pe(member));
        ASSERT_EQ(nodes.number_here[pe], here.pe(j));
        ASSERT_EQ(nodes.node_of[pe], nodes.node_of[static_cast<std::size_t>(map.pe(members.front()))]);
        ASSERT_EQ(parts.part_of(member), static_cast<int>(i));
        ASSERT_TRUE(seen.insert(member).second);
      }
    }
    ASSERT_EQ(static_cast<int>(seen.size()), map.size);
  }
}

/// How often each PE has arrived at a barrier of some team.
class Arrivals {
 public:
  explicit Arrivals(std::size_t pes) : counts_(pes) {}

  /// A sync of the team, which must not end before all members have arrived.
  void sync(Team& team) {
    const int before = ++at(team, team.me());
    const auto ok = team.sync();
    EXPECT_TRUE(ok) << ok.error().text;
    for (int member = 0; member < team.size(); ++member) {
      EXPECT_GE(at(team, member), before) << member;
    }
    EXPECT_TRUE(team.sync());  // nobody arrives at the next one before all have looked
  }

 private:
  std::atomic<int>& at(const Team& team, int member) {
    return counts_[static_cast<std::size_t>(team.map().pe(member))];
  }
  std::deque<std::atomic<int>> counts_;
};

TEST(TeamsOnNodes, MayBeUnevenlySpacedOnANode) {
  Arrivals arrivals(7);
  Arrivals of_child(7);
  run_nodes({0, 0, 0, 1, 0, 0, 1}, [&](Job& job) {
    TeamTable teams(job, without_device);
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const auto evens = split(teams, job, world, {0, 2, 4});
    ASSERT_TRUE(evens) << evens.error().text;
    ASSERT_EQ(*evens != nullptr, job.world_me() % 2 == 0);
    if (*evens != nullptr) {
      Team& team = **evens;
      EXPECT_TRUE(team.divides_a_node());
      EXPECT_EQ(team.nodes(), 3);
      for (int i = 0; i < 100; ++i) {
        arrivals.sync(team);
      }
      // Evenly spaced on its node, but in two parts of the parent.
      const auto child = split(teams, job, team, {2, 2, 2});
      ASSERT_TRUE(child) << child.error().text;
      ASSERT_EQ(*child != nullptr, job.world_me() == 2 || job.world_me() == 4);
      if (*child != nullptr) {
        for (int i = 0; i < 100; ++i) {
          of_child.sync(**child);
        }
        EXPECT_TRUE(teams.destroy((*child)->slot()));
      }
      EXPECT_TRUE(teams.destroy(team.slot()));
    }
    EXPECT_TRUE(world.sync());
    EXPECT_TRUE(teams.destroy_all());
  });
}

/// A team of a team, as far as there are enough members.
TEST(TeamsOnNodes, SynchroniseWhateverThePlacement) {
  std::minstd_rand random(11);
  const int rounds = test_support::repeats(20, 2000);
  for (int round = 0; round < rounds; ++round) {
    std::vector<int> node_of{0, 1};
    while (node_of.size() < 8) {
      node_of.push_back(static_cast<int>(random() % 2));
    }
    const auto seed = static_cast<unsigned>(random());
    Arrivals arrivals(node_of.size());
    run_nodes(node_of, [&](Job& job) {
      TeamTable teams(job, without_device);
      ASSERT_TRUE(job.bootstrap->barrier());
      ASSERT_TRUE(teams.make_predefined());
      std::minstd_rand common(seed);
      Team* parent = teams.find(shmem::kWorldTeam);
      while (parent != nullptr && parent->size() > 1) {
        const int stride = 1 + static_cast<int>(common() % 2);
        const int start = static_cast<int>(common() % 2);
        const int size = (parent->size() - start + stride - 1) / stride;
        const auto made =
            split(teams, job, *parent, {parent->map().pe(start), parent->map().stride * (size > 1 ? stride : 1), size});
        ASSERT_TRUE(made) << made.error().text;
        if (*made == nullptr) {
          break;
        }
        for (int i = 0; i < 3; ++i) {
          arrivals.sync(**made);
        }
        if (start == 0 && stride == 1) {
          break;  // the same members again
        }
        parent = *made;
      }
      ASSERT_TRUE(teams.find(shmem::kWorldTeam)->sync());
      ASSERT_TRUE(teams.destroy_all());
    });
  }
}

constexpr int kFewIds = 4;  // bits: four ids for each of four PEs

// PE 0 gives the ids and is in none of the teams, so it does not know which are live.
TEST(TeamIds, OfLiveTeamsAreNotGivenAgain) {
  std::barrier<> members(2);
  run_nodes({0, 1, 0, 1}, [&](Job& job) {
    TeamTable teams(job, without_device, kFewIds);
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    const TeamMap middle{1, 1, 2};
    const auto live = split(teams, job, world, middle);
    ASSERT_TRUE(live) << live.error().text;
    // This message waits for PE 2: a barrier of another team with the same id would take it.
    if (job.world_me() == 1) {
      ASSERT_TRUE((*live)->arrive());
    }
    for (int i = 0; i < 20; ++i) {
      const auto team = split(teams, job, world, middle);
      ASSERT_TRUE(team) << team.error().text;
      if (*team == nullptr) {
        continue;
      }
      members.arrive_and_wait();
      if (job.world_me() == 2) {
        ASSERT_TRUE((*team)->arrive());
        const auto over = (*team)->test();
        ASSERT_TRUE(over);
        EXPECT_FALSE(*over) << "team " << i << " took a message of another team";
      }
      members.arrive_and_wait();
      if (job.world_me() == 1) {
        ASSERT_TRUE((*team)->arrive());
      }
      ASSERT_TRUE((*team)->wait());
      ASSERT_TRUE(teams.destroy((*team)->slot()));
    }
    if (job.world_me() == 2) {
      ASSERT_TRUE((*live)->arrive());
    }
    if (*live != nullptr) {
      ASSERT_TRUE((*live)->wait());
    }
    EXPECT_TRUE(world.sync());
    EXPECT_TRUE(teams.destroy_all());
  });
}

TEST(TeamIds, CanBeUsedUp) {
  run_nodes({0, 1, 0, 1}, [&](Job& job) {
    TeamTable teams(job, without_device, kFewIds);
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(teams.make_predefined());
    Team& world = *teams.find(shmem::kWorldTeam);
    std::vector<Team*> live;
    for (int i = 0; i < 3; ++i) {  // 0 is the world's
      const auto team = split(teams, job, world, {1, 1, 2});
      ASSERT_TRUE(team) << team.error().text;
      live.push_back(*team);
    }
    const auto one_more = split(teams, job, world, {1, 1, 2});
    ASSERT_FALSE(one_more);
    EXPECT_NE(one_more.error().text.find("PE 0 has given all its 4 ids to teams that still exist"), std::string::npos)
        << one_more.error().text;
    if (live[1] != nullptr) {
      ASSERT_TRUE(teams.destroy(live[1]->slot()));
    }
    const auto again = split(teams, job, world, {1, 1, 2});
    ASSERT_TRUE(again) << again.error().text;
    if (*again != nullptr) {
      EXPECT_TRUE((*again)->sync());
    }
    EXPECT_TRUE(world.sync());
    EXPECT_TRUE(teams.destroy_all());
  });
}

}  // namespace
