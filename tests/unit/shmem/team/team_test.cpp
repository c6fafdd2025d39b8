// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/local_team.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <random>

#include "shmem/barrier/active_set.hpp"
#include "shmem/config/log.hpp"
#include "shmem/layout/peers.hpp"
#include "tests/unit/shmem/short_limit_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::LocalTeam;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::run_job;

TEST(TeamMap, TranslatesBothWaysAndReportsItsGaps) {
  const TeamMap map{2, 3, 4};  // PEs 2 5 8 11
  EXPECT_EQ(map.pe(3), 11);
  EXPECT_EQ(map.member(8), 2);
  EXPECT_EQ(map.member(9), std::nullopt);
  EXPECT_EQ(map.member(14), std::nullopt);
  EXPECT_EQ(map.member(-1), std::nullopt);
}

class SoftwareSync : public testing::TestWithParam<int> {};

TEST_P(SoftwareSync, NoMemberLeavesABarrierBeforeAllHaveEntered) {
  const int size = GetParam();
  constexpr int kRounds = 300;
  std::vector<std::atomic<int>> entered(static_cast<std::size_t>(size));
  std::atomic<int> early{0};
  run_job(size, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (int k = 1; k <= kRounds; ++k) {
      if (random() % 16 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
      }
      entered[static_cast<std::size_t>(job.me)].store(k, std::memory_order_relaxed);
      ASSERT_TRUE(team.sync());
      for (const auto& other : entered) {
        early += other.load(std::memory_order_relaxed) < k ? 1 : 0;
      }
    }
    EXPECT_EQ(team.stats().by_software, size > 1 ? kRounds : 0U);
  });
  EXPECT_EQ(early, 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, SoftwareSync, testing::Values(1, 2, 3, 4, 7, 8, 16));

TEST(Team, SyncNamesThePeItWaitedForAfterATimeout) {
  for (const int last : {0, 1}) {
    shmem_test::run_team_with_short_limit(3, [last](Job& job, Team& team) {
      if (job.me == 2) {
        return;
      }
      while (job.me == last && job.team_sync(0, 1 - last).entered == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
      }
      const auto ok = team.sync();
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().code, std::errc::timed_out);
      // The first one may time out before the other one enters.
      const std::string missing = job.me == last ? "waited for PE 2 (pid" : "PE 2 (pid";
      EXPECT_NE(ok.error().text.find(missing), std::string::npos) << ok.error().text;
    });
  }
}

TEST(Team, EntersNoOtherBarrierAfterOneThatFailed) {
  shmem_test::run_team_with_short_limit(3, [&](Job& job, Team& team) {
    if (job.me == 0) {
      ASSERT_STREQ(team.algorithm(), "central_counter");
      const auto first = team.sync();
      const auto second = team.sync();
      ASSERT_FALSE(first);
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().text, first.error().text);
      EXPECT_FALSE(team.dissolve());
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    // A member that is counted twice would release a member that still waits for one that never arrives.
    EXPECT_EQ(job.team_sync(0, 0).counter.value.load(), 1U);
  });
}

TEST(Team, SyncFailsWhenAMissingPeIsDead) {
  run_job(2, [&](Job& job) {
    // No process has this number: it is larger than any that Linux uses.
    job.metadata(job.me).pid = job.me == 1 ? (1 << 22) + 1 : ::getpid();
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 0) {
      const auto ok = team.sync();
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().code, std::errc::owner_dead);
      EXPECT_NE(ok.error().text.find("PE 1"), std::string::npos) << ok.error().text;
      EXPECT_NE(ok.error().text.find("dead"), std::string::npos) << ok.error().text;
    }
  });
}

TEST(Team, SyncFailsWhenAMissingPeIsAZombie) {
  const pid_t zombie = ::fork();
  if (zombie == 0) {
    ::_exit(0);
  }
  run_job(2, [&](Job& job) {
    shmem::introduce(job);
    if (job.me == 1) {
      job.metadata(1).pid = zombie;
      job.metadata(1).process_start = 0;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 0) {
      const auto ok = team.sync();
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().code, std::errc::owner_dead);
    }
  });
  ::waitpid(zombie, nullptr, 0);
}

TEST(Team, SyncDoesNotTakeAPeOfAnotherContainerForDead) {
  shmem::Options options;
  options.barrier_timeout = std::chrono::milliseconds{700};  // longer than a check takes
  run_job(
      2,
      [&](Job& job) {
        shmem::introduce(job);
        if (job.me == 1) {
          job.metadata(1).pid = (1 << 22) + 1;
          job.metadata(1).process_space += 1;
        }
        ASSERT_TRUE(job.bootstrap->barrier());
        LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
        if (job.me == 0) {
          const auto ok = team.sync();
          ASSERT_FALSE(ok);
          EXPECT_EQ(ok.error().code, std::errc::timed_out);
        }
      },
      options);
}

/// Collects the messages of the library during its lifetime.
class Messages {
 public:
  Messages() {
    messages() = this;
    shmem::set_log_handler([](int, const char* text) {
      const std::scoped_lock lock(messages()->mutex_);
      messages()->texts_.emplace_back(text);
    });
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  ~Messages() { shmem::set_log_handler(nullptr); }

  std::vector<std::string> texts() {
    const std::scoped_lock lock(mutex_);
    return texts_;
  }

 private:
  static Messages*& messages() {
    static Messages* all = nullptr;
    return all;
  }
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

TEST(Team, SyncNamesThePesItWaitsForRepeatedly) {
  shmem::Options options;
  options.barrier_warning = std::chrono::milliseconds{20};
  Messages messages;
  run_job(
      3,
      [&](Job& job) {
        shmem::introduce(job);
        ASSERT_TRUE(job.bootstrap->barrier());
        LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
        if (job.me == 2) {
          while (messages.texts().size() < 2) {
            std::this_thread::sleep_for(std::chrono::milliseconds{5});
          }
        }
        EXPECT_TRUE(team.sync());
      },
      options);
  std::array<char, 64> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string missing = "PE 2 (pid " + std::to_string(::getpid()) + " on " + host.data() + ")";
  for (const auto& text : messages.texts()) {
    for (const std::string& part : {std::string("barrier 1 of team 0 (central_counter) has taken "),
                                    std::string(" s; it waits for PE "), missing}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
}

TEST(Team, SyncEndsWhenTheJobIsEnded) {
  run_job(2, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    if (job.me == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      job.bootstrap->abort(1, "");
    } else {
      const auto ok = team.sync();
      ASSERT_FALSE(ok);
      EXPECT_EQ(ok.error().code, std::errc::operation_canceled);
    }
  });
}

TEST(ActiveSet, LeavesItsWordsZero) {
  constexpr int kSize = 5;
  std::atomic<int> entered{0};
  run_job(kSize, [&](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    auto* words = reinterpret_cast<long*>(job.memory.heap(job.me));
    for (int k = 1; k <= 200; ++k) {
      entered.fetch_add(1, std::memory_order_relaxed);
      ASSERT_EQ(shmem::active_set_sync(job, TeamMap{0, 1, kSize}, words, [&job] { return job.ended(); }), std::errc{});
      EXPECT_GE(entered.load(std::memory_order_relaxed), k * kSize);
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    for (int i = 0; i <= shmem::kActiveSetProgress; ++i) {
      EXPECT_EQ(words[i], 0);
    }
  });
}

}  // namespace
