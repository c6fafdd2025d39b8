// SPDX-License-Identifier: Apache-2.0
// Barriers through a device that fails: none is lost, none ends early. (uapi/README.md, "Losing the device")
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "shmem/team/team.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::GbaMember;
using shmem::Job;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::run_job;

/// Checks the property of a barrier: nobody leaves barrier k before all have entered it.
class Entered {
 public:
  explicit Entered(int size) : count_(static_cast<std::size_t>(size)) {}
  void enter(int pe, int k) { count_[static_cast<std::size_t>(pe)].store(k, std::memory_order_relaxed); }
  [[nodiscard]] bool all(int k) const {
    for (const auto& count : count_) {
      // Relaxed: the barrier itself has to order these.
      if (count.load(std::memory_order_relaxed) < k) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::atomic<int>> count_;
};

gba_device* any_device() {
  static gba_device* device = [] {
    gba_device* opened = nullptr;
    gba_open(nullptr, &opened);
    return opened;
  }();
  return device;
}

GbaMember wanting(const Job& job) {
  return {any_device(), "", true, job.policy};
}

void barriers(Team& team, const Job& job, Entered& entered, int from, int to, std::atomic<int>& early) {
  for (int k = from; k < to; ++k) {
    entered.enter(job.me, k);
    const auto ok = team.sync();
    EXPECT_TRUE(ok) << ok.error().text;
    early += entered.all(k) ? 0 : 1;
  }
}

struct Tally {
  std::atomic<std::uint64_t> by_device{0}, by_software{0};
};

/// `rounds` barriers of `size` PEs; returns how they were done, summed over the PEs. `in_step`: the program lets nobody
/// enter a barrier before all have left the one before, and asks nobody else's help for that.
void run(int size, int rounds, Tally& tally, bool in_step = false) {
  Entered entered(size);
  std::atomic<int> early{0};
  run_job(size, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    Team team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job)));
    for (int k = 1; k <= rounds; ++k) {
      barriers(team, job, entered, k, k + 1, early);
      ASSERT_TRUE(!in_step || job.bootstrap->barrier());
    }
    tally.by_device += team.stats().by_device;
    tally.by_software += team.stats().by_software;
    EXPECT_TRUE(team.dissolve(any_device()));
  });
  EXPECT_EQ(early, 0);
}

TEST(GbaBarrier, IsReleasedByTheDeviceAsLongAsItLives) {
  fake_gba::power_on(32);
  Tally tally;
  run(4, 200, tally);
  EXPECT_EQ(fake_gba::releases(), 200U);
  EXPECT_EQ(tally.by_device, 800U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0) << "dissolve gives the group back";
}

TEST(GbaBarrier, LosesNoBarrierWhenTheDeviceDies) {
  for (int seed = 0; seed < 40; ++seed) {
    fake_gba::power_on(32);
    fake_gba::lose_device_at_random(60);
    Tally tally;
    run(4, 60, tally);
    EXPECT_GT(tally.by_software, 0U);
  }
}

TEST(GbaBarrier, LosesNoBarrierWhenSomeMembersLoseTheirWayToTheDevice) {
  for (int seed = 0; seed < 40; ++seed) {
    fake_gba::power_on(32);
    fake_gba::lose_members(80);
    Tally tally;
    run(5, 80, tally);
    EXPECT_GT(tally.by_software, 0U);
  }
}

TEST(GbaBarrier, LosesNoBarrierThatOneMemberAloneCouldLeave) {
  for (int seed = 0; seed < 40; ++seed) {
    fake_gba::power_on(32);
    fake_gba::lose_members(20);
    Tally tally;
    run(4, 20, tally, true);
    EXPECT_GT(tally.by_software, 0U);
  }
}

TEST(GbaBarrier, AllMembersGoToSoftwareAtTheSameBarrier) {
  fake_gba::power_on(32);
  constexpr int kSize = 4;
  Entered entered(kSize);
  std::atomic<int> early{0};
  run_job(kSize, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    Team team(job, TeamMap{0, 1, kSize}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job)));
    barriers(team, job, entered, 1, 11, early);
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      fake_gba::lose_device();
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    // One barrier to notice, one in which everybody says so; software from then on.
    barriers(team, job, entered, 11, 13, early);
    EXPECT_STREQ(team.algorithm(), "npu_v3");
    EXPECT_NE(team.gba_reason(), "");
    barriers(team, job, entered, 13, 20, early);
    EXPECT_EQ(team.stats().by_device, 10U);
    EXPECT_EQ(team.stats().by_software, 9U);
  });
  EXPECT_EQ(early, 0);
}

TEST(GbaAgreement, NobodyUsesTheDeviceIfOneMemberCannot) {
  fake_gba::power_on(32);
  fake_gba::refuse_member(2);
  run_job(4, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    Team team(job, TeamMap{0, 1, 4}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job)));
    EXPECT_STREQ(team.algorithm(), "npu_v3");
    EXPECT_NE(team.gba_reason(), "");
    EXPECT_TRUE(team.sync());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaAgreement, AMemberWithoutAPortKeepsAllOnSoftware) {
  for (int without = 0; without < 3; ++without) {
    fake_gba::power_on(32);
    run_job(3, [&](Job& job) {
      ASSERT_TRUE(job.bootstrap->barrier());
      Team team(job, TeamMap{0, 1, 3}, 0, 0);
      const GbaMember member{job.me == without ? nullptr : any_device(), "no port", true, job.policy};
      ASSERT_TRUE(team.use_gba(member));
      EXPECT_STREQ(team.algorithm(), "npu_v3");
      EXPECT_NE(team.gba_reason(), "");
    });
    EXPECT_EQ(fake_gba::groups_in_use(), 0);
  }
}

TEST(GbaAgreement, WithoutAFreeGroupTheTeamIsSoftwareAndSaysWhy) {
  fake_gba::power_on(1);
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    Team first(job, TeamMap{0, 1, 2}, 0, 0);
    Team second(job, TeamMap{0, 1, 2}, 1, 0);
    ASSERT_TRUE(first.use_gba(wanting(job)));
    ASSERT_TRUE(second.use_gba(wanting(job)));
    EXPECT_STREQ(first.algorithm(), "gba");
    EXPECT_STREQ(second.algorithm(), "npu_v3");
    if (job.me == 0) {
      EXPECT_EQ(second.gba_reason(), "all groups are taken");
    }
    EXPECT_TRUE(first.dissolve(any_device()));
    EXPECT_TRUE(second.use_gba(wanting(job))) << "the group is free again";
    EXPECT_STREQ(second.algorithm(), "gba");
    EXPECT_TRUE(second.sync());
    EXPECT_TRUE(second.dissolve(any_device()));
  });
}

}  // namespace
