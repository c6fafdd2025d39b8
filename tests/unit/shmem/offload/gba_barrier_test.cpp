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

/// A PE of a job whose team is all PEs, and the number of its last barrier.
struct Pe {
  Job& job;
  Entered& entered;
  std::atomic<int>& early;
  GbaPort port{0};
  LocalTeam team{job, TeamMap{0, 1, job.size}, 0, 0};
  int k = 0;

  /// The GbaMember of a PE that has opened the device.
  GbaMember wanting() {
    EXPECT_TRUE(port.open());
    return {&port, "", true, job.policy, std::chrono::milliseconds{1}};
  }
  /// The same if only PEs 0..ports-1 have a port.
  GbaMember sharing(int ports) {
    GbaMember member{nullptr, "", true, job.policy, std::chrono::milliseconds{1}, true};
    return job.me < ports ? wanting() : member;
  }
  /// Makes `count` barriers, every `split`-th one in two phases.
  void barriers(int count, int split = 0) {
    for (const int last = k + count; k < last;) {
      entered.enter(job.me, ++k);
      const auto ok = split > 0 && k % split == 0 ? sync_in_two_phases() : team.sync();
      EXPECT_TRUE(ok) << ok.error().text;
      early += entered.all(k) ? 0 : 1;
    }
  }
  /// Calls `cause` on PE 0 while no PE is in a barrier of the team.
  void in_between(const std::function<void()>& cause) {
    EXPECT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      cause();
    }
    EXPECT_TRUE(job.bootstrap->barrier());
  }
  void expect_software() {
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason(), "");
  }

 private:
  shmem::Result<void> sync_in_two_phases() {
    if (auto ok = team.arrive(); !ok || job.me % 2 == 0) {
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
};

/// Runs `body` on each of `size` PEs. No barrier may end early.
void run_team(int size, const std::function<void(Pe&)>& body, const shmem::Options& options = {}) {
  Entered entered(size);
  std::atomic<int> early{0};
  const auto run = [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    Pe pe{job, entered, early};
    body(pe);
  };
  run_job(size, run, options);
  EXPECT_EQ(early, 0);
}

TEST(GbaBarrier, IsReleasedByAHealthyDevice) {
  fake_gba::power_on(32);
  run_team(4, [](Pe& pe) {
    ASSERT_TRUE(pe.team.use_gba(pe.wanting(), kPorts));
    pe.barriers(200);
    EXPECT_EQ(pe.team.stats().by_device, 200U);
    EXPECT_TRUE(pe.team.dissolve());
  });
  EXPECT_EQ(fake_gba::releases(), 200U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0) << "dissolve() frees the group";
}

TEST(GbaBarrier, AllMembersSwitchToSoftwareAtTheSameBarrier) {
  fake_gba::power_on(32);
  run_team(4, [](Pe& pe) {
    ASSERT_TRUE(pe.team.use_gba(pe.wanting(), kPorts));
    pe.barriers(10);
    pe.in_between(fake_gba::lose_device);
    // All members notice the loss in barrier 11 and publish it in barrier 12. From then on they use software only.
    pe.barriers(2);
    pe.expect_software();
    pe.barriers(7);
    EXPECT_EQ(pe.team.stats().by_device, 10U);
    EXPECT_EQ(pe.team.stats().by_software, 9U);
  });
}

/// Makes barriers until the team uses the device again. All PEs must find that at the same barrier, or they hang.
void recover(Pe& pe) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{100};
  auto* const in_time = &pe.job.team_sync(1, 0).offer.handle.key;  // a word of PE 0 that all PEs read
  while (std::string(pe.team.algorithm()) != "gba") {
    pe.barriers(1);
    if (pe.job.me == 0 && std::chrono::steady_clock::now() > deadline) {
      std::atomic_ref(*in_time).store(1, std::memory_order_relaxed);
    }
    pe.barriers(1);
    if (std::atomic_ref(*in_time).load(std::memory_order_relaxed) != 0) {
      ADD_FAILURE() << "not in use again after 100 s: " << pe.team.gba_reason();
      break;
    }
    if (pe.k % 64 < 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});  // all PEs sleep alike and stay in step
    }
  }
}

/// Runs `rounds` barriers, every third one in two phases, with the failures that `cause` sets up, then as many as it
/// takes to use the device again. Some barriers must be the device's, and some software's.
void run_through_trouble(int size, int ports, int rounds, const std::function<void()>& cause) {
  fake_gba::power_on(3);
  fake_gba::return_at_open(0);
  std::atomic<std::uint64_t> by_device{0}, by_software{0};
  shmem::Options options;
  options.barrier_timeout = std::chrono::seconds{30};
  const auto body = [&](Pe& pe) {
    GbaMember member = pe.sharing(ports);
    member.needed = true;
    ASSERT_TRUE(pe.team.use_gba(member, ports));
    EXPECT_STREQ(pe.team.algorithm(), "gba");
    ASSERT_TRUE(pe.job.bootstrap->barrier());
    if (pe.job.me == 0) {
      cause();  // the others may be in a barrier
    }
    pe.barriers(rounds, 3);
    pe.in_between([] {
      fake_gba::lose_members(0);
      fake_gba::lose_device_at_random(0);
      fake_gba::return_at_open(0);
      fake_gba::refuse_member(-1);
    });
    // The last barriers may have lost what only the next ones notice and publish.
    pe.barriers(3);
    recover(pe);
    const auto before = pe.team.stats().by_device;
    pe.barriers(100);
    EXPECT_EQ(pe.team.gba_reason(), "");
    EXPECT_GT(pe.team.stats().by_device, before);
    by_device += pe.team.stats().by_device;
    by_software += pe.team.stats().by_software;
    EXPECT_TRUE(pe.team.dissolve());
  };
  run_team(size, body, options);
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
  run_team(3, [](Pe& pe) {
    const GbaMember member = pe.wanting();
    pe.in_between(fake_gba::lose_device);
    ASSERT_TRUE(pe.team.use_gba(member, kPorts));
    pe.expect_software();
    ASSERT_TRUE(pe.job.bootstrap->barrier());
    if (pe.job.me == 0) {
      fake_gba::return_at_open(0);
    }
    recover(pe);
    pe.barriers(100);
    EXPECT_GE(pe.team.stats().by_device, 100U);
    EXPECT_TRUE(pe.team.dissolve());
  });
}

TEST(GbaAgreement, NoMemberUsesTheDeviceIfOneCannot) {
  fake_gba::power_on(32);
  fake_gba::refuse_member(2);
  run_team(4, [](Pe& pe) {
    ASSERT_TRUE(pe.team.use_gba(pe.wanting(), kPorts));
    pe.expect_software();
    pe.barriers(1);
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaAgreement, AMemberWithoutAPortKeepsAllOnSoftware) {
  for (int without = 0; without < 3; ++without) {
    fake_gba::power_on(32);
    run_team(3, [&](Pe& pe) {
      GbaMember member = pe.wanting();
      if (pe.job.me == without) {
        member.port = nullptr;
        member.unavailable = "no port";
      }
      ASSERT_TRUE(pe.team.use_gba(member, kPorts));
      pe.expect_software();
    });
    EXPECT_EQ(fake_gba::groups_in_use(), 0);
  }
}

TEST(GbaAgreement, WithoutAFreeGroupTheTeamUsesSoftwareAndGivesTheReason) {
  fake_gba::power_on(1);
  run_team(2, [](Pe& pe) {
    LocalTeam second(pe.job, TeamMap{0, 1, 2}, 1, 0);
    const GbaMember member = pe.wanting();
    ASSERT_TRUE(pe.team.use_gba(member, kPorts));
    ASSERT_TRUE(second.use_gba(member, kPorts));
    EXPECT_STREQ(pe.team.algorithm(), "gba");
    EXPECT_STREQ(second.algorithm(), "central_counter");
    if (pe.job.me == 0) {
      EXPECT_EQ(second.gba_reason(), "all groups are taken");
    }
    EXPECT_TRUE(pe.team.dissolve());
    EXPECT_TRUE(second.use_gba(member, kPorts)) << "the group is free again";
    EXPECT_STREQ(second.algorithm(), "gba");
    EXPECT_TRUE(second.sync());
    EXPECT_TRUE(second.dissolve());
  });
}

TEST(SharedPorts, AllMembersThatShareAPortUseTheDevice) {
  fake_gba::power_on(4);
  run_team(7, [](Pe& pe) {
    ASSERT_TRUE(pe.team.use_gba(pe.sharing(3), 3));
    pe.barriers(300);
    EXPECT_EQ(pe.team.stats().by_device, 300U);
    EXPECT_EQ(pe.team.stats().by_software, 0U);
    pe.in_between(fake_gba::lose_device);
    pe.barriers(100);
    EXPECT_EQ(pe.team.stats().by_software, 100U);
    pe.expect_software();  // also on members that share the port of another
    EXPECT_TRUE(pe.team.dissolve());
  });
  EXPECT_EQ(fake_gba::releases(), 300U);
}

TEST(SharedPorts, ATeamWithoutTheOpenerOfAPortUsesSoftwareAndGivesTheReason) {
  fake_gba::power_on(4);
  run_team(4, [](Pe& pe) {
    if (pe.job.me == 0) {
      return;
    }
    LocalTeam team(pe.job, TeamMap{1, 1, 3}, 0, 0);
    ASSERT_TRUE(team.use_gba(pe.sharing(2), 2));  // PE 2 shares the port of PE 0
    EXPECT_STREQ(team.algorithm(), "central_counter");
    EXPECT_NE(team.gba_reason().find("PE 0"), std::string::npos) << team.gba_reason();
    EXPECT_TRUE(team.sync());
    EXPECT_TRUE(team.dissolve());
  });
}

TEST(SharedPorts, ATeamBehindOnePortUsesTheDeviceOnlyIfRequired) {
  for (const bool needed : {false, true}) {
    fake_gba::power_on(4);
    run_team(3, [&](Pe& pe) {
      GbaMember member = pe.sharing(1);
      member.needed = needed;
      ASSERT_TRUE(pe.team.use_gba(member, 1));
      EXPECT_STREQ(pe.team.algorithm(), needed ? "gba" : "central_counter");
      EXPECT_EQ(pe.team.gba_reason() == "", needed);
      pe.barriers(50);
      EXPECT_EQ(pe.team.stats().by_device, needed ? 50U : 0U);
      EXPECT_TRUE(pe.team.dissolve());
    });
  }
}

}  // namespace
