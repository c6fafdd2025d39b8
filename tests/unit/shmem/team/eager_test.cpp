// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/eager.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "shmem/collective/members.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/impatient_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::EagerChannel;
using shmem::Job;
using shmem::LocalTeam;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::run_job;

std::uint64_t number_in(const EagerChannel::Given& given) {
  std::uint64_t number = 0;
  std::memcpy(&number, given.data, sizeof number);
  return number;
}

void dawdle(std::minstd_rand& random) {
  if (random() % 16 == 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  }
}

class EagerChannelOf : public testing::TestWithParam<int> {};

TEST_P(EagerChannelOf, WhatOneGivesIsThereUntilTheOthersHaveReadIt) {
  const int size = GetParam();
  constexpr std::uint64_t kCalls = 500;
  std::vector<std::atomic<std::uint64_t>> done(static_cast<std::size_t>(size));
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 100);
    job.team_sync(0, job.me).calls = 100;
    job.eager_words(0, job.me).finished.value = 100;
    ASSERT_TRUE(job.bootstrap->barrier());
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (std::uint64_t call = 1; call <= kCalls; ++call) {
      ASSERT_TRUE(team.eager().begin());
      if (job.me == 0) {
        ASSERT_TRUE(team.eager().give(&call, sizeof call));
        for (const auto& other : done) {
          // By turns: the place was used for the call that many before.
          ASSERT_GE(other.load() + shmem::kEagerSlots, &other == &done[0] ? 0 : call);
        }
      } else {
        dawdle(random);
        const auto given = team.eager().take(0);
        ASSERT_TRUE(given);
        dawdle(random);
        ASSERT_EQ(number_in(*given), call);
        ASSERT_EQ(given->size, sizeof call);
        done[static_cast<std::size_t>(job.me)] = call;
      }
      team.eager().end(false);
    }
  });
}

TEST_P(EagerChannelOf, AllGetWhatAllGive) {
  const int size = GetParam();
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    shmem::Members members{job, team.map(), team.me(), {}, {}, 0};
    members.eager = &team.eager();
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (std::uint64_t call = 1; call <= 300; ++call) {
      dawdle(random);
      const std::uint64_t mine = call * 100 + static_cast<std::uint64_t>(job.me);
      int next = 0;
      ASSERT_TRUE(shmem::exchange(members, &mine, sizeof mine, [&](int member, const EagerChannel::Given& given) {
        ASSERT_EQ(member, next++);
        ASSERT_EQ(number_in(given), call * 100 + static_cast<std::uint64_t>(member));
      }));
      ASSERT_EQ(next, size);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, EagerChannelOf, testing::Values(1, 2, 3, 8));

TEST(EagerChannel, NamesThePeItWaitsForWhenTheTimeRunsOut) {
  shmem_test::run_impatient_team(3, [&](Job& job, Team& team) {
    if (job.me != 2) {
      ASSERT_TRUE(team.eager().begin());
      const auto given = team.eager().take(2);
      ASSERT_FALSE(given);
      EXPECT_EQ(given.error().code, std::errc::timed_out);
      EXPECT_NE(given.error().text.find("collective call 1 of team 0"), std::string::npos) << given.error().text;
      EXPECT_NE(given.error().text.find("PE 2"), std::string::npos) << given.error().text;
      EXPECT_FALSE(team.eager().begin());
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

}  // namespace
