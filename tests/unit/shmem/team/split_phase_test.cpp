// SPDX-License-Identifier: Apache-2.0
// Syncs in two phases on threads, in software and through a device that fails.
#include <gtest/gtest.h>

#include <random>

#include "shmem/layout/peers.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/no_system_calls.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Algorithm;
using shmem::Job;
using shmem::LocalTeam;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::run_job;

constexpr std::chrono::milliseconds kShort{5};

void use_gba(Team& team, const Job& job, shmem::GbaPort& port) {
  ASSERT_TRUE(port.open());
  ASSERT_TRUE(team.use_gba({&port, "", true, job.policy, std::chrono::milliseconds{1}}, job.size));
}

/// One sync, completed in a random way.
void sync_somehow(Team& team, std::minstd_rand& random) {
  ASSERT_TRUE(team.arrive());
  ASSERT_TRUE(team.is_open());
  switch (random() % 4) {
    case 0:
      break;
    case 1:
      for (auto over = team.test();; over = team.test()) {
        ASSERT_TRUE(over) << over.error().text;
        if (*over) {
          break;
        }
        std::this_thread::yield();
      }
      return;
    case 2:
      for (int i = 0; i < 3 && team.is_open(); ++i) {
        ASSERT_TRUE(team.test());
      }
      break;
    default:
      while (team.is_open()) {
        const auto ok = team.wait(std::chrono::microseconds{200});
        ASSERT_TRUE(ok || ok.error().code == std::errc::timed_out) << ok.error().text;
      }
  }
  if (team.is_open()) {
    ASSERT_TRUE(team.wait());
  }
}

/// Checks that no member sees a barrier as complete before all have entered it.
void check_barriers(
    int size, int rounds, const std::function<void(Team&, Job&, shmem::GbaPort&)>& prepare,
    const std::function<void(Team&)>& finish = [](Team&) {}) {
  std::vector<std::atomic<int>> entered(static_cast<std::size_t>(size));
  std::atomic<int> early{0};
  run_job(size, [&](Job& job) {
    shmem::introduce(job);
    ASSERT_TRUE(job.bootstrap->barrier());
    shmem::GbaPort port(0);
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    prepare(team, job, port);
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (int k = 1; k <= rounds; ++k) {
      // Gives a lost device time to be reopened, because barriers are faster. The wait ends soon if it does not return.
      if (port.get() != nullptr) {
        gba_barrier_port_await(port.get(), 2'000'000);
      }
      if (k % 64 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
      }
      // Relaxed: the barrier under test has to order these.
      entered[static_cast<std::size_t>(job.me)].store(k, std::memory_order_relaxed);
      if (k % 5 == 0) {
        ASSERT_TRUE(team.sync());
      } else {
        sync_somehow(team, random);
      }
      ASSERT_FALSE(team.is_open());
      for (const auto& other : entered) {
        early += other.load(std::memory_order_relaxed) < k ? 1 : 0;
      }
    }
    finish(team);
  });
  EXPECT_EQ(early, 0);
}

class SplitPhase : public testing::TestWithParam<int> {};

TEST_P(SplitPhase, IsNotCompleteBeforeAllHaveArrived) {
  for (const auto& spec : shmem::kAlgorithms) {
    SCOPED_TRACE(spec.name);
    check_barriers(GetParam(), 60, [&](Team& team, Job&, shmem::GbaPort&) {
      ASSERT_TRUE(team.agree_on_algorithm({spec.algorithm, {}}));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, SplitPhase, testing::Values(1, 2, 3, 5, 8));

TEST(SplitPhaseThroughTheDevice, IsNotCompleteBeforeAllHaveArrived) {
  fake_gba::power_on(32);
  check_barriers(4, 200, use_gba, [](Team& team) {
    EXPECT_EQ(team.stats().by_device, 200U);
    EXPECT_TRUE(team.dissolve());
  });
}

TEST(SplitPhaseThroughTheDevice, LosesNoBarrierWithTheDevice) {
  for (int seed = 0; seed < 10; ++seed) {
    fake_gba::power_on(32);
    fake_gba::lose_device_at_random(60);
    check_barriers(4, 60, use_gba);
    fake_gba::power_on(32);
    fake_gba::lose_members(80);
    check_barriers(5, 80, use_gba);
  }
}

TEST(SplitPhaseThroughTheDevice, UsesTheDeviceAgainAfterABarrierOfTwoPhases) {
  fake_gba::power_on(32);
  fake_gba::return_at_open(0);
  std::atomic<std::uint64_t> device_again{0};
  check_barriers(
      3, 1500,
      [](Team& team, Job& job, shmem::GbaPort& port) {
        use_gba(team, job, port);
        ASSERT_TRUE(job.bootstrap->barrier());
        if (job.me == 0) {
          fake_gba::lose_device();
        }
        ASSERT_TRUE(job.bootstrap->barrier());
      },
      [&](Team& team) {
        // Barriers 64, 128, ... are check rounds, but check rounds in one call may bring the device back earlier.
        device_again += team.stats().by_device;
        EXPECT_TRUE(team.dissolve());
      });
  EXPECT_GT(device_again, 0U);
}

TEST(SplitPhase, AMemberThatHasArrivedMayComputeWhileTheOthersContinue) {
  std::atomic<bool> may_come{false};
  std::atomic<bool> other_is_out{false};
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 0) {
      while (!may_come) {
        std::this_thread::yield();
      }
      ASSERT_TRUE(team.arrive());
      while (!other_is_out) {
        std::this_thread::yield();  // stands for computing
      }
      EXPECT_TRUE(team.test().value());
    } else {
      ASSERT_TRUE(team.arrive());
      for (int i = 0; i < 10; ++i) {
        EXPECT_FALSE(team.test().value());
      }
      may_come = true;
      while (!team.test().value()) {
        std::this_thread::yield();
      }
      other_is_out = true;
    }
  });
}

TEST(SplitPhase, OtherCollectiveCallsAreRefusedUntilItIsComplete) {
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    EXPECT_TRUE(team.ready());
    ASSERT_TRUE(team.arrive());
    const auto refused = [](const auto& outcome) {
      return !outcome && outcome.error().code == std::errc::device_or_resource_busy &&
             outcome.error().text.find("barrier 1 of team 0 is open") != std::string::npos;
    };
    EXPECT_TRUE(refused(team.sync()));
    EXPECT_TRUE(refused(team.arrive()));
    EXPECT_TRUE(refused(team.ready()));
    EXPECT_TRUE(refused(team.agree_on_call({})));
    EXPECT_TRUE(refused(team.dissolve()));
    EXPECT_TRUE(team.wait());
    EXPECT_TRUE(team.sync());
  });
}

TEST(SplitPhase, ATimedWaitNamesTheMissingPesAndCanBeContinued) {
  std::atomic<int> gave_up{0};
  run_job(3, [&](Job& job) {
    shmem::introduce(job);
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
    if (job.me == 1) {
      while (gave_up < 2) {
        std::this_thread::yield();
      }
      ASSERT_TRUE(team.arrive());
      EXPECT_TRUE(team.wait());
      return;
    }
    ASSERT_TRUE(team.arrive());
    for (int i = 0; i < 2; ++i) {
      const auto late = team.wait(kShort);
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error().code, std::errc::timed_out);
      EXPECT_NE(late.error().text.find("barrier 1 of team 0"), std::string::npos) << late.error().text;
      EXPECT_NE(late.error().text.find("timed out after 5000000 ns"), std::string::npos) << late.error().text;
      EXPECT_NE(late.error().text.find("PE 1 (pid"), std::string::npos) << late.error().text;
      EXPECT_TRUE(team.is_open());
    }
    ++gave_up;
    EXPECT_TRUE(team.wait());
  });
}

TEST(SplitPhase, MembersThatMakeTheBarrierInDifferentWaysGetAnError) {
  run_job(2, [](Job& job) {
    shmem::introduce(job);
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    ASSERT_TRUE(team.agree_on_algorithm({Algorithm::kBasic, {}}));
    if (job.me == 0) {
      ASSERT_TRUE(team.arrive());
    }
    const auto ok = job.me == 0 ? team.wait() : team.sync();
    ASSERT_FALSE(ok);
    EXPECT_EQ(ok.error().code, std::errc::protocol_error);
    EXPECT_NE(ok.error().text.find(job.me == 0 ? "PE 1 (pid" : "PE 0 (pid"), std::string::npos) << ok.error().text;
    EXPECT_NE(ok.error().text.find("all members make a barrier the same way"), std::string::npos) << ok.error().text;
  });
}

TEST(SplitPhase, MayBeMixedWithSyncsOfTheCentralCounter) {
  run_job(3, [](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
    for (int k = 0; k < 100; ++k) {
      if ((k + job.me) % 3 == 0) {
        ASSERT_TRUE(team.arrive());
        ASSERT_TRUE(team.wait());
      } else {
        ASSERT_TRUE(team.sync());
      }
    }
  });
}

TEST(Sync, MakesNoSystemCallIfAllHaveArrivedAndNoPeSleeps) {
  run_job(2, [](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 1) {
      ASSERT_TRUE(team.arrive());
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me == 0) {
      test_support::expect_no_system_calls([&] { return team.sync().has_value(); });
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(SplitPhase, TestFindsADeadMember) {
  run_job(2, [](Job& job) {
    shmem::introduce(job);
    if (job.me == 1) {
      job.metadata(1).pid = (1 << 22) + 1;  // larger than any that Linux uses
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 0) {
      ASSERT_TRUE(team.arrive());
      auto over = team.test();
      while (over && !*over) {
        std::this_thread::sleep_for(kShort);
        over = team.test();
      }
      ASSERT_FALSE(over);
      EXPECT_EQ(over.error().code, std::errc::owner_dead);
    }
  });
}

}  // namespace
