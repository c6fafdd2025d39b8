// SPDX-License-Identifier: Apache-2.0
// Barriers of the leaders of nodes through a device that fails: libgba's (tests/unit/driver/barrier_test.cpp), whose
// words and alarms are read and written over the network. The leaders share no memory.
#include "shmem/offload/inter_node_barrier.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/leaders.hpp"

namespace {

using namespace std::chrono_literals;
using shmem::GbaMember;
using shmem::InterNodeBarrier;

using Leader = shmem_test::Leader<InterNodeBarrier>;

/// Runs `body` on all leaders, as threads.
void run_leaders(int size, const std::function<void(Leader&)>& body, std::chrono::milliseconds limit = 20s) {
  const auto make = [](const InterNodeBarrier::Means& means) { return InterNodeBarrier(means); };
  const auto barrier = [](Leader& leader) {
    return leader.way.active() ? leader.way.arrive_and_wait() : leader.leaders.barrier();
  };
  shmem_test::run_leaders<InterNodeBarrier>(size, make, barrier, body, limit);
}

TEST(InterNodeBarrier, IsReleasedByAHealthyDevice) {
  fake_gba::power_on(32);
  run_leaders(4, [](Leader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    ASSERT_TRUE(leader.way.active()) << leader.way.reason();
    for (int k = 0; k < 200; ++k) {
      ASSERT_TRUE(leader.barrier());
    }
    EXPECT_EQ(leader.way.served(), 200U);
    EXPECT_TRUE(leader.way.dissolve());
    EXPECT_FALSE(leader.way.active());
  });
  EXPECT_EQ(fake_gba::releases(), 200U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(InterNodeBarrier, AReleasedLeaderAnswersWhileItComputes) {
  // A member that is released alone does not enter the next barrier before the other one has completed this one.
  for (int i = 0; i < test_support::repeats(10, 200); ++i) {
    fake_gba::power_on(32);
    fake_gba::lose_members(3);
    std::array<std::atomic<int>, 2> over{};
    run_leaders(2, [&](Leader& leader) {
      ASSERT_TRUE(leader.way.join(leader.wanting()));
      for (int k = 1; k <= 20; ++k) {
        EXPECT_TRUE(leader.barrier());
        over[static_cast<std::size_t>(leader.me)] = k;
        while (over[static_cast<std::size_t>(1 - leader.me)] < k && !testing::Test::HasFailure()) {
          std::this_thread::yield();
        }
      }
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(InterNodeBarrier, UsesANewGroupWithTheSameNumberAndIgnoresOldWords) {
  fake_gba::power_on(32);
  fake_gba::return_at_open(0);
  std::atomic<int> early{0};
  run_leaders(3, [&](Leader& leader) {
    for (int group = 0; group < 10; ++group) {
      ASSERT_TRUE(leader.way.join(leader.wanting()));
      ASSERT_TRUE(leader.way.active()) << leader.way.reason() << " in group " << group;
      for (int k = 0; k < 1 + group % 3; ++k) {
        early += leader.barrier() ? 0 : 1;
      }
      if (leader.me == group % 3) {
        fake_gba::lose_device();
      }
      while (leader.way.active()) {
        early += leader.barrier() ? 0 : 1;
      }
      early += leader.barrier() ? 0 : 1;
    }
  });
  EXPECT_EQ(early, 0);
}

/// The ports still count as healthy when the leaders ask for a group.
TEST(InterNodeBarrier, ReopensADeviceThatWasLostAgainBeforeItsUse) {
  fake_gba::power_on(32);
  fake_gba::return_at_open(0);
  std::atomic<int> early{0};
  run_leaders(3, [&](Leader& leader) {
    const GbaMember member = leader.wanting();
    ASSERT_TRUE(leader.way.join(member));
    if (leader.me == 1) {
      fake_gba::lose_device();
    }
    while (leader.way.active()) {
      early += leader.barrier() ? 0 : 1;
    }
    EXPECT_EQ(gba_barrier_port_await(member.port->get(), std::uint64_t{10'000'000'000}), 0);
    ASSERT_TRUE(leader.leaders.barrier());
    if (leader.me == 1) {
      fake_gba::lose_device();
    }
    ASSERT_TRUE(leader.leaders.barrier());
    for (int tries = 0; tries < 100 && !leader.way.active(); ++tries) {
      ASSERT_TRUE(leader.way.join(member));
    }
    EXPECT_TRUE(leader.way.active()) << leader.way.reason();
    early += leader.barrier() ? 0 : 1;
    EXPECT_TRUE(leader.way.dissolve());
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(InterNodeBarrier, IsUsedByAllOrNoneAndNamesThePeThatCannot) {
  fake_gba::power_on(32);
  run_leaders(3, [](Leader& leader) {
    GbaMember member = leader.wanting();
    if (leader.me == 2) {
      member = {nullptr, "no device here", true, {}, 1ms};
    }
    ASSERT_TRUE(leader.way.join(member));
    EXPECT_FALSE(leader.way.active());
    EXPECT_EQ(leader.way.reason(), "PE 2: no device here");
    EXPECT_TRUE(leader.barrier());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  fake_gba::refuse_member(1);
  run_leaders(3, [](Leader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    EXPECT_FALSE(leader.way.active());
    EXPECT_EQ(leader.way.reason(), "PE 1: lost");
    EXPECT_TRUE(leader.barrier());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  fake_gba::power_on(0);
  run_leaders(2, [](Leader& leader) {
    ASSERT_TRUE(leader.way.join(leader.wanting()));
    EXPECT_EQ(leader.way.reason(), "PE 0: all groups are taken");
  });
}

TEST(InterNodeBarrier, NamesThePeItWaitedForAfterATimeout) {
  fake_gba::power_on(32);
  std::atomic<bool> seen{false};
  run_leaders(
      2,
      [&](Leader& leader) {
        ASSERT_TRUE(leader.way.join(leader.wanting()));
        if (leader.me == 0) {
          const auto ok = leader.way.arrive_and_wait();
          ASSERT_FALSE(ok);
          EXPECT_EQ(ok.error().code, std::errc::timed_out);
          EXPECT_NE(ok.error().text.find("it waited for PE 1"), std::string::npos) << ok.error().text;
          seen = true;
        }
        while (!seen && !testing::Test::HasFailure()) {
          std::this_thread::yield();
        }
      },
      50ms);
}

}  // namespace
