// SPDX-License-Identifier: Apache-2.0
// The leaders of nodes on several switches, or of more nodes than a group has members: no barrier is lost and none ends
// early while blocks of leaders lose their groups, independently of each other, and get new ones.
#include "shmem/offload/gba_switches.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/leaders.hpp"

namespace {

using namespace std::chrono_literals;
using shmem::blocks_of;
using shmem::GbaHome;
using shmem::GbaMember;
using shmem::GbaSwitches;
using test_support::repeats;
using SwitchLeader = shmem_test::Leader<GbaSwitches>;
using Names = std::vector<std::string>;

GbaHome home(const std::string& name, std::uint32_t most) {
  GbaHome home{.switch_name = {}, .most = most};
  name.copy(home.switch_name.data(), home.switch_name.size() - 1);
  return home;
}

std::vector<int> blocks(const Names& names, std::uint32_t most) {
  std::vector<GbaHome> homes;
  for (const auto& name : names) {
    homes.push_back(home(name, most));
  }
  return blocks_of(homes);
}

TEST(BlocksOfLeaders, AreTheLeadersOfASwitchUpToTheSizeOfAGroup) {
  EXPECT_EQ(blocks({"", "", ""}, 708), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(blocks({"b", "a", "b", "c", "a"}, 708), (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(blocks({"", "", "", "", ""}, 2), (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(blocks({"a", "a", "b", "a", "b", "b"}, 2), (std::vector<int>{0, 0, 1, 2, 1, 3}));
  EXPECT_EQ(blocks(Names(709, "a"), 708).back(), 1);
  EXPECT_EQ(blocks(Names(708, "a"), 708).back(), 0);
}

TEST(BlocksOfLeaders, FitEachDeviceOfASwitchAndIgnoreMissingOnes) {
  EXPECT_EQ(blocks_of({home("a", 708), home("a", 2), home("a", 0), home("b", 3), home("b", 3), home("b", 3)}),
            (std::vector<int>{0, 0, 1, 2, 2, 2}));
  EXPECT_EQ(blocks_of({home("", 0), home("", 0)}), (std::vector<int>{0, 0}));
}

/// Runs `body` on the leaders as threads; `switches` names the switch of each. All of them use the same fake device.
void run_switch_leaders(const Names& switches, const std::function<void(SwitchLeader&)>& body) {
  const auto make = [&](const shmem::InterNodeBarrier::Means& means) {
    return GbaSwitches(means, switches[static_cast<std::size_t>(means.leaders.me())], {.block = 8, .firsts = 8});
  };
  const auto barrier = [](SwitchLeader& leader) { return leader.way.arrive_and_wait(); };
  shmem_test::run_leaders<GbaSwitches>(static_cast<int>(switches.size()), make, barrier, body, 20s);
}

TEST(GbaSwitches, HaveAGroupEachAndUseItTwicePerBarrier) {
  fake_gba::power_on(32);
  run_switch_leaders({"a", "b", "a", "b", "b"}, [](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    ASSERT_TRUE(leader.way.active()) << leader.way.reason();
    EXPECT_EQ(leader.way.blocks(), 2);
    EXPECT_EQ(leader.way.first_of_block(), leader.me < 2);
    for (int k = 0; k < 100; ++k) {
      ASSERT_TRUE(leader.barrier());
    }
    EXPECT_EQ(leader.way.served(), 100U);
    EXPECT_TRUE(leader.way.dissolve());
    EXPECT_FALSE(leader.way.active());
    EXPECT_TRUE(leader.barrier());
  });
  EXPECT_EQ(fake_gba::releases(), 2 * 2 * 100U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaSwitches, UseOneGroupOnceIfThereIsOneSwitch) {
  fake_gba::power_on(32);
  run_switch_leaders({"a", "a", "a"}, [](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    for (int k = 0; k < 100; ++k) {
      ASSERT_TRUE(leader.barrier());
    }
    EXPECT_EQ(leader.way.served(), 100U);
    EXPECT_TRUE(leader.way.dissolve());
  });
  EXPECT_EQ(fake_gba::releases(), 100U);
}

TEST(GbaSwitches, UseSeveralGroupsOfOneSwitchIfOneIsTooSmall) {
  fake_gba::power_on(32);
  fake_gba::limit_members(2);
  run_switch_leaders({"", "", "", "", ""}, [](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    ASSERT_TRUE(leader.way.active()) << leader.way.reason();
    EXPECT_EQ(leader.way.blocks(), 3);
    for (int k = 0; k < 50; ++k) {
      ASSERT_TRUE(leader.barrier());
    }
    // The last leader is alone in its block and needs no group.
    EXPECT_EQ(leader.way.served(), leader.me < 4 ? 50U : 0U);
    EXPECT_TRUE(leader.way.dissolve());
  });
  EXPECT_EQ(fake_gba::releases(), 2 * 2 * 50U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaSwitches, LoseNoBarrierWhenSomeBlocksLoseTheirGroups) {
  for (int i = 0; i < repeats(20, 1000); ++i) {
    std::atomic<int> early{0};
    fake_gba::power_on(32);
    fake_gba::limit_members(3);
    fake_gba::lose_members(100);
    run_switch_leaders({"a", "a", "b", "a", "a", "b"}, [&](SwitchLeader& leader) {
      ASSERT_TRUE(leader.way.join(leader.wanting()));
      for (int k = 0; k < 40; ++k) {
        early += leader.barrier() ? 0 : 1;
      }
      EXPECT_TRUE(leader.way.dissolve());
    });
    EXPECT_EQ(early, 0);
    EXPECT_EQ(fake_gba::groups_in_use(), 0);
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

/// The device is lost once, and is back the next time that a leader opens it, until it restarts in `restarts_in`.
void lose_and_return(const Names& switches, fake_gba::Call restarts_in) {
  fake_gba::power_on(32);
  fake_gba::return_at_open(0);
  std::atomic<int> early{0};
  std::atomic<std::size_t> back{0};
  std::atomic<int> last{INT32_MAX};
  run_switch_leaders(switches, [&](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    bool lost = false;
    bool again = false;
    const auto end = std::chrono::steady_clock::now() + 60s;
    for (int k = 1; k <= last; ++k) {
      if (leader.me == 0 && k == 5) {
        fake_gba::restart_in(restarts_in);
        fake_gba::lose_device();
      }
      if (leader.me == 0 && (back == switches.size() || std::chrono::steady_clock::now() > end)) {
        last = k;
      }
      early += leader.barrier() ? 0 : 1;
      lost = lost || !leader.way.active();
      if (lost && !again && leader.way.active()) {
        again = true;
        ++back;
      }
    }
    EXPECT_TRUE(leader.way.active()) << leader.way.reason();
    EXPECT_EQ(leader.way.reason(), "");
    EXPECT_TRUE(leader.way.dissolve());
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaSwitches, GetAnotherGroupOnceTheDeviceIsBack) {
  lose_and_return({"", "", ""}, fake_gba::Call::kNone);
  lose_and_return({"a", "a", "b", "b"}, fake_gba::Call::kNone);
}

TEST(GbaSwitches, GetAnotherGroupIfTheDeviceIsLostAgainInTheRoundInWhichItIsBack) {
  for (const auto call : {fake_gba::Call::kAllocate, fake_gba::Call::kJoin}) {
    lose_and_return({"", "", ""}, call);
    lose_and_return({"a", "a", "b", "b"}, call);
  }
}

// A program with slow barriers must not wait for as many of them as one with fast barriers.
TEST(GbaSwitches, GetAnotherGroupAfterFewBarriersIfTheseAreSlow) {
  constexpr int kMost = 400;  // barriers of 20 ms: much longer than a look for the device takes
  fake_gba::power_on(32);
  std::atomic<int> early{0};
  std::atomic<int> back{0};
  std::atomic<int> last{kMost};
  run_switch_leaders({"", ""}, [&](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    bool counted = false;
    for (int k = 1; k <= last; ++k) {
      if (leader.me == 0 && k == 3) {
        fake_gba::lose_device();
      }
      if (leader.me == 0 && k == 6) {
        fake_gba::return_at_open(0);
      }
      if (leader.me == 0 && back == 2) {
        last = k;
      }
      std::this_thread::sleep_for(20ms);
      early += leader.barrier() ? 0 : 1;
      if (k > 6 && leader.way.active() && !counted) {
        counted = true;
        ++back;
      }
    }
    EXPECT_TRUE(leader.way.active()) << "no device after " << last << " barriers: " << leader.way.reason();
    EXPECT_TRUE(leader.way.dissolve());
  });
  EXPECT_EQ(early, 0);
}

TEST(GbaSwitches, AreUsedByAllOrNoneAndNameThePeThatCannot) {
  fake_gba::power_on(32);
  run_switch_leaders({"a", "a", "b", "b"}, [](SwitchLeader& leader) {
    GbaMember member = leader.wanting();
    if (leader.me == 3) {
      member = {nullptr, "no device here", true, {}, 1ms};
    }
    ASSERT_TRUE(leader.way.join(member));
    EXPECT_FALSE(leader.way.active());
    EXPECT_EQ(leader.way.reason(), "PE 3: no device here");
    EXPECT_TRUE(leader.barrier());
    EXPECT_FALSE(leader.way.by_device());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  run_switch_leaders({"a", "b", "c"}, [](SwitchLeader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    EXPECT_FALSE(leader.way.active());
    EXPECT_EQ(leader.way.reason(), "each of its nodes is on a different switch (SHMEM_GBA_SWITCH)");
    EXPECT_TRUE(leader.barrier());
  });
}

}  // namespace
