// SPDX-License-Identifier: Apache-2.0
// The barriers of a team's members on one node through a device that fails: the team uses libgba's barrier
// (tests/unit/driver/barrier_test.cpp) with its own words, software and ports, and reports how barriers were completed.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shmem/team/local_team.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::GbaMember;
using shmem::GbaPort;
using shmem::Job;
using shmem::LocalTeam;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::run_job;

/// Checks the guarantee of a barrier: no PE leaves barrier k before all have entered it.
class Entered {
 public:
  explicit Entered(int size) : count_(static_cast<std::size_t>(size)) {}
  void enter(int pe, int k) { count_[static_cast<std::size_t>(pe)].store(k, std::memory_order_relaxed); }
  [[nodiscard]] bool all(int k) const {
    for (const auto& count : count_) {
      // Relaxed: the barrier under test has to order these.
      if (count.load(std::memory_order_relaxed) < k) {
        return false;
      }
    }
    return true;
  }

 private:
  std::vector<std::atomic<int>> count_;
};

constexpr int kPorts = 64;  // one for each PE

/// The GbaMember of a PE that has opened the device.
GbaMember wanting(const Job& job, GbaPort& port) {
  EXPECT_TRUE(port.open());
  return {&port, "", true, job.policy, std::chrono::milliseconds{1}};
}

/// The same if only PEs 0..ports-1 have a port.
GbaMember sharing(const Job& job, GbaPort& port, int ports) {
  GbaMember member{nullptr, "", true, job.policy, std::chrono::milliseconds{1}, true};
  return job.me < ports ? wanting(job, port) : member;
}

shmem::Result<void> sync_in_two_phases(Team& team) {
  if (auto ok = team.arrive(); !ok || team.me() % 2 == 0) {
    return ok ? team.wait() : ok;
  }
  for (;;) {
    const auto over = team.test();
    if (!over) {
      return over.error();
    }
    if (*over) {
      return {};
    }
    std::this_thread::yield();
  }
}

/// Makes barriers `from` to `to`-1, every `split`-th one in two phases.
void barriers(Team& team, const Job& job, Entered& entered, int from, int to, std::atomic<int>& early, int split = 0) {
  for (int k = from; k < to; ++k) {
    entered.enter(job.me, k);
    const auto ok = split > 0 && k % split == 0 ? sync_in_two_phases(team) : team.sync();
    EXPECT_TRUE(ok) << ok.error().text;
    early += entered.all(k) ? 0 : 1;
  }
}

TEST(GbaBarrier, IsReleasedByAHealthyDevice) {
  fake_gba::power_on(32);
  constexpr int kSize = 4;
  Entered entered(kSize);
  std::atomic<int> early{0};
  run_job(kSize, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, kSize}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job, port), kPorts));
    barriers(team, job, entered, 1, 201, early);
    EXPECT_EQ(team.stats().by_device, 200U);
    EXPECT_TRUE(team.dissolve());
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(fake_gba::releases(), 200U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0) << "dissolve() frees the group";
}

TEST(GbaBarrier, AllMembersSwitchToSoftwareAtTheSameBarrier) {
  fake_gba::power_on(32);
  constexpr int kSize = 4;
  Entered entered(kSize);
  std::atomic<int> early{0};
  run_job(kSize, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, kSize}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job, port), kPorts));
    barriers(team, job, entered, 1, 11, early);
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      fake_gba::lose_device();
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    // All members notice the loss in barrier 11 and publish it in barrier 12. From then on they use software only.
    barriers(team, job, entered, 11, 13, early);
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason(), "");
    barriers(team, job, entered, 13, 20, early);
    EXPECT_EQ(team.stats().by_device, 10U);
    EXPECT_EQ(team.stats().by_software, 9U);
  });
  EXPECT_EQ(early, 0);
}

/// Makes barriers of one PE from `k` on until the team uses the device again. All PEs must find that at the same
/// barrier, or they hang.
int barriers_until_recovered(Team& team, const Job& job, Entered& entered, int k, std::atomic<int>& early) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  auto* const in_time = &job.team_sync(1, 0).offer.handle.key;  // a word of PE 0 that all PEs read
  while (std::string(team.algorithm()) != "gba") {
    barriers(team, job, entered, k, k + 1, early);
    ++k;
    if (job.me == 0 && std::chrono::steady_clock::now() > deadline) {
      std::atomic_ref(*in_time).store(1, std::memory_order_relaxed);
    }
    barriers(team, job, entered, k, k + 1, early);
    ++k;
    if (std::atomic_ref(*in_time).load(std::memory_order_relaxed) != 0) {
      ADD_FAILURE() << "not in use again after 20 s: " << team.gba_reason();
      break;
    }
    if (k % 64 < 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});  // all PEs sleep alike and stay in step
    }
  }
  return k;
}

/// Runs `rounds` barriers, every third one in two phases, with the failures that `cause` sets up, then as many as it
/// takes to use the device again. Some barriers must be the device's, and some software's.
void run_through_trouble(int size, int ports, int rounds, const std::function<void()>& cause) {
  fake_gba::power_on(3);
  fake_gba::return_at_open(0);
  std::atomic<std::uint64_t> by_device{0}, by_software{0};
  Entered entered(size);
  std::atomic<int> early{0};
  shmem::Options options;
  options.barrier_timeout = std::chrono::seconds{30};
  run_job(
      size,
      [&](Job& job) {
        ASSERT_TRUE(job.bootstrap->barrier());
        GbaPort port(0);
        LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
        GbaMember member = sharing(job, port, ports);
        member.needed = true;
        ASSERT_TRUE(team.use_gba(member, ports));
        EXPECT_STREQ(team.algorithm(), "gba");
        ASSERT_TRUE(job.bootstrap->barrier());
        if (job.me == 0) {
          cause();
        }
        barriers(team, job, entered, 1, rounds + 1, early, 3);
        ASSERT_TRUE(job.bootstrap->barrier());
        if (job.me == 0) {
          fake_gba::lose_members(0);
          fake_gba::lose_device_at_random(0);
          fake_gba::return_at_open(0);
          fake_gba::refuse_member(-1);
        }
        ASSERT_TRUE(job.bootstrap->barrier());
        // The last barriers may have lost what only the next ones notice and publish.
        barriers(team, job, entered, rounds + 1, rounds + 4, early);
        const int k = barriers_until_recovered(team, job, entered, rounds + 4, early);
        const auto before = team.stats().by_device;
        barriers(team, job, entered, k, k + 100, early);
        EXPECT_EQ(team.gba_reason(), "");
        EXPECT_GT(team.stats().by_device, before);
        by_device += team.stats().by_device;
        by_software += team.stats().by_software;
        EXPECT_TRUE(team.dissolve());
      },
      options);
  EXPECT_EQ(early, 0);
  EXPECT_GT(by_device, 0U);
  EXPECT_GT(by_software, 0U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaRecovery, ATeamUsesARestartedDeviceAgain) {
  run_through_trouble(4, kPorts, 300, fake_gba::lose_device);
}

TEST(GbaRecovery, LosesNoBarrierWithAPortForEachPeOrSharedOnes) {
  for (const auto& [size, ports] : {std::pair{2, kPorts}, {5, kPorts}, {5, 2}, {4, 1}, {6, 4}, {3, 2}}) {
    SCOPED_TRACE(std::to_string(size) + " PEs, " + std::to_string(ports) + " ports");
    run_through_trouble(size, ports, test_support::repeats(1000, 50000), [] {
      fake_gba::lose_device_at_random(200);
      fake_gba::lose_members(200);
      fake_gba::return_at_open(3);
    });
  }
}

TEST(GbaRecovery, ATeamCreatedWhileTheDeviceWasLostUsesItLater) {
  fake_gba::power_on(32);
  Entered entered(3);
  std::atomic<int> early{0};
  run_job(3, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
    const GbaMember member = wanting(job, port);
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      fake_gba::lose_device();
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(team.use_gba(member, kPorts));
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason(), "");
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      fake_gba::return_at_open(0);
    }
    const int k = barriers_until_recovered(team, job, entered, 1, early);
    barriers(team, job, entered, k, k + 100, early);
    EXPECT_GE(team.stats().by_device, 100U);
    EXPECT_TRUE(team.dissolve());
  });
  EXPECT_EQ(early, 0);
}

TEST(GbaAgreement, NoMemberUsesTheDeviceIfOneCannot) {
  fake_gba::power_on(32);
  fake_gba::refuse_member(2);
  run_job(4, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, 4}, 0, 0);
    ASSERT_TRUE(team.use_gba(wanting(job, port), kPorts));
    EXPECT_STREQ(team.algorithm(), "central_counter");
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
      GbaPort port(0);
      LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
      GbaMember member = wanting(job, port);
      if (job.me == without) {
        member.port = nullptr;
        member.unavailable = "no port";
      }
      ASSERT_TRUE(team.use_gba(member, kPorts));
      EXPECT_STREQ(team.algorithm(), "central_counter");
      EXPECT_NE(team.gba_reason(), "");
    });
    EXPECT_EQ(fake_gba::groups_in_use(), 0);
  }
}

TEST(GbaAgreement, WithoutAFreeGroupTheTeamUsesSoftwareAndGivesTheReason) {
  fake_gba::power_on(1);
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam first(job, TeamMap{0, 1, 2}, 0, 0);
    LocalTeam second(job, TeamMap{0, 1, 2}, 1, 0);
    const GbaMember member = wanting(job, port);
    ASSERT_TRUE(first.use_gba(member, kPorts));
    ASSERT_TRUE(second.use_gba(member, kPorts));
    EXPECT_STREQ(first.algorithm(), "gba");
    EXPECT_STREQ(second.algorithm(), "central_counter");
    if (job.me == 0) {
      EXPECT_EQ(second.gba_reason(), "all groups are taken");
    }
    EXPECT_TRUE(first.dissolve());
    EXPECT_TRUE(second.use_gba(member, kPorts)) << "the group is free again";
    EXPECT_STREQ(second.algorithm(), "gba");
    EXPECT_TRUE(second.sync());
    EXPECT_TRUE(second.dissolve());
  });
}

TEST(SharedPorts, AllMembersThatShareAPortUseTheDevice) {
  fake_gba::power_on(4);
  Entered entered(7);
  std::atomic<int> early{0};
  run_job(7, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, 7}, 0, 0);
    ASSERT_TRUE(team.use_gba(sharing(job, port, 3), 3));
    barriers(team, job, entered, 1, 301, early);
    EXPECT_EQ(team.stats().by_device, 300U);
    EXPECT_EQ(team.stats().by_software, 0U);
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      fake_gba::lose_device();
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    barriers(team, job, entered, 301, 401, early);
    EXPECT_EQ(team.stats().by_software, 100U);
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason(), "") << "also on members that share the port of another";
    EXPECT_TRUE(team.dissolve());
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(fake_gba::releases(), 300U);
}

TEST(SharedPorts, ATeamWithoutTheOpenerOfAPortUsesSoftwareAndGivesTheReason) {
  fake_gba::power_on(4);
  run_job(4, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      return;
    }
    GbaPort port(0);
    LocalTeam team(job, TeamMap{1, 1, 3}, 0, 0);
    ASSERT_TRUE(team.use_gba(sharing(job, port, 2), 2));  // PE 2 shares the port of PE 0
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason().find("PE 0"), std::string::npos) << team.gba_reason();
    EXPECT_TRUE(team.sync());
    EXPECT_TRUE(team.dissolve());
  });
}

TEST(SharedPorts, ATeamBehindOnePortUsesTheDeviceOnlyIfRequired) {
  for (const bool needed : {false, true}) {
    fake_gba::power_on(4);
    run_job(3, [&](Job& job) {
      ASSERT_TRUE(job.bootstrap->barrier());
      GbaPort port(0);
      LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
      GbaMember member = sharing(job, port, 1);
      member.needed = needed;
      ASSERT_TRUE(team.use_gba(member, 1));
      EXPECT_STREQ(team.algorithm(), needed ? "gba" : "central_counter");
      EXPECT_EQ(team.gba_reason() == "", needed);
      for (int k = 0; k < 50; ++k) {
        EXPECT_TRUE(team.sync());
      }
      EXPECT_EQ(team.stats().by_device, needed ? 50U : 0U);
      EXPECT_TRUE(team.dissolve());
    });
  }
}

}  // namespace
