// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/statistics.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Algorithm;
using shmem::BarrierPath;
using shmem::BarrierStatistics;
using shmem::Job;
using shmem::LocalTeam;
using shmem::TeamMap;
using shmem_test::run_job;

shmem::Options time_all() {
  shmem::Options options;
  options.info = true;
  return options;
}

TEST(BarrierStatistics, TimesOneBarrierInSixtyFour) {
  run_job(2, [](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    for (std::uint64_t k = 0; k < 3 * BarrierStatistics::kEach; ++k) {
      ASSERT_TRUE(team.sync());
    }
    EXPECT_EQ(team.statistics().total(), 3 * BarrierStatistics::kEach);
    EXPECT_EQ(team.statistics().times().timed, 3U);
  });
}

TEST(BarrierStatistics, RecordTheLastMemberAndTheWaitingTimes) {
  constexpr auto kLate = std::chrono::milliseconds{10};
  constexpr std::uint64_t kBarriers = 5;
  constexpr auto kLeast = static_cast<std::uint64_t>(std::chrono::nanoseconds{kLate}.count());
  run_job(
      3,
      [&](Job& job) {
        ASSERT_TRUE(job.bootstrap->barrier());
        LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
        for (std::uint64_t k = 0; k < kBarriers; ++k) {
          if (job.me == 1) {
            // The others have arrived before the sleep, so they wait at least that long.
            while (job.team_sync(0, 0).times.number[(k + 1) & 1] != k + 1 ||
                   job.team_sync(0, 2).times.number[(k + 1) & 1] != k + 1) {
              std::this_thread::yield();
            }
            std::this_thread::sleep_for(kLate);
          }
          ASSERT_TRUE(team.sync());
        }
        const auto& statistics = team.statistics();
        EXPECT_EQ(statistics.by(BarrierPath::software(Algorithm::kCentralCounter)), kBarriers);
        EXPECT_EQ(statistics.by_device(), 0U);
        EXPECT_EQ(statistics.times().timed, kBarriers);
        EXPECT_EQ(statistics.last().member, 1);
        EXPECT_EQ(statistics.last().often, kBarriers);
        EXPECT_EQ(statistics.was_last(job.me), job.me == 1 ? kBarriers : 0);
        EXPECT_GE(statistics.times().skew, kBarriers * kLeast);
        EXPECT_GE(statistics.times().longest_skew, kLeast);
        EXPECT_LE(statistics.times().longest_skew, statistics.times().skew);
        if (job.me != 1) {
          EXPECT_GE(statistics.times().wait, kBarriers * kLeast);
          EXPECT_GE(statistics.times().longest_wait, kLeast);
        }
        const std::string text = statistics.text();
        EXPECT_NE(text.find("5 barriers (5 central_counter); PE " + std::to_string(job.me) + " waited "),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("PE 1 arrived last most often, in 5 of 5"), std::string::npos) << text;
      },
      time_all());
}

TEST(BarrierStatistics, SkipMembersThatTakeNoTimes) {
  run_job(2, [](Job& job) {
    job.options.info = job.me == 0;
    ASSERT_TRUE(job.bootstrap->barrier());
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    for (int k = 0; k < 10; ++k) {
      ASSERT_TRUE(team.sync());
    }
    EXPECT_EQ(team.statistics().times().timed, job.me == 0 ? 10U : 0U);
    if (job.me == 0) {
      EXPECT_EQ(team.statistics().was_last(1), 0U);
      EXPECT_EQ(team.statistics().times().skew, 0U);
    }
  });
}

TEST(BarrierStatistics, ReportNoTimesWithoutBarriers) {
  run_job(1, [](Job& job) {
    const LocalTeam team(job, TeamMap{0, 1, 1}, 0, 0);
    EXPECT_EQ(team.statistics().text(), "0 barriers");
    EXPECT_EQ(team.statistics().last().member, -1);
    EXPECT_EQ(team.statistics().was_last(0), 0U);
  });
}

TEST(BarrierStatistics, ReadFewMembersOfLargeTeams) {
  constexpr int kMembers = 66;
  run_job(kMembers, [](Job& job) {
    ASSERT_TRUE(job.bootstrap->barrier());
    if (job.me != 0) {
      return;
    }
    const TeamMap map{0, 1, kMembers};
    const shmem::SyncView view(job, map, 0);
    BarrierStatistics statistics(job, map, view, 0, view.size());
    std::uint64_t skew = 0;
    const auto run = [&](std::uint64_t count) {
      for (int member = 1; member < kMembers; ++member) {
        auto& times = view.member(member).times;
        times.number[count & 1] = count;
        times.time[count & 1] = ~std::uint64_t{0} / 2 + static_cast<std::uint64_t>(member);
      }
      statistics.arrive(count);
      statistics.complete(count, BarrierPath::software(Algorithm::kDissemination));
      const std::uint64_t before = std::exchange(skew, statistics.times().skew);
      return skew - before;
    };
    // Every member arrives later than the one before it, in the far future. PE 0, which arrives now, is not read.
    EXPECT_EQ(run(BarrierStatistics::kEach + BarrierStatistics::kEach / 2), BarrierStatistics::kMostRead - 1U);
    EXPECT_EQ(statistics.was_last(2 * BarrierStatistics::kMostRead - 1), 1U);
    // Members 64 and 65, and on from PE 0.
    EXPECT_GT(run(4 * BarrierStatistics::kEach + BarrierStatistics::kEach / 2), ~std::uint64_t{0} / 4);
    EXPECT_EQ(statistics.was_last(kMembers - 1), 1U);
    EXPECT_EQ(statistics.times().timed, 2U);
  });
}

}  // namespace
