// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/eager.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>

#include "shmem/collective/members.hpp"
#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/counted_yields.hpp"
#include "tests/unit/shmem/short_limit_team.hpp"
#include "tests/unit/shmem/team/eager_members.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::EagerChannel;
using Givers = EagerChannel::Givers;
using shmem::Job;
using shmem::LocalTeam;
using shmem::Team;
using shmem::TeamMap;
using shmem_test::byte_of;
using shmem_test::dawdle;
using shmem_test::EagerMembers;
using shmem_test::join_ranges;
using shmem_test::Range;
using shmem_test::run_job;
using shmem_test::seen_yields;
using shmem_test::yields_of_thread;

std::uint64_t number_in(const EagerChannel::Given& given) {
  std::uint64_t number = 0;
  std::memcpy(&number, given.data, sizeof number);
  return number;
}

/// The yields of a barrier for which the other member has come.
unsigned yields_of_last(Job& job, Team& team) {
  const auto seen = job.team_sync(0, 0).counter.value.load();
  if (!job.bootstrap->barrier()) {
    ADD_FAILURE();
  }
  while (job.team_sync(0, 0).counter.value.load() == seen) {
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  }
  const unsigned before = yields_of_thread;
  EXPECT_TRUE(team.sync());
  return yields_of_thread - before;
}

/// Member 0 gives, and then enters two barriers.
void give_and_sync(unsigned spins, const std::function<void(Job& job, Team& team, bool gave)>& sync) {
  run_job(2, [&](Job& job) {
    job.policy.spins = spins;
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers all(job, team, shmem::kEagerLimit);
    long to = 0;
    const long from = 42;
    ASSERT_TRUE(shmem::broadcast(all.members, &to, &from, sizeof to, 0, true));
    EXPECT_EQ(to, 42);
    for (const bool gave : {true, false}) {
      sync(job, team, gave);
    }
  });
}

TEST(Broadcast, WhoGaveDataYieldsUntilTheOthersHaveComeToTheBarrier) {
  std::atomic<unsigned> yields{0};
  std::atomic<bool> is_busy{true};  // PE 0 lost the processor in a yield: then it may not yield for a while
  for (int tries = 0; is_busy && tries < 10; ++tries) {
    is_busy = false;
    give_and_sync(0, [&](Job& job, Team& team, bool gave) {
      const unsigned expected = (gave ? 2 : 1) * job.policy.yields;  // the second half in the barrier's own wait
      if (job.me == 0) {
        yields = 0;
      }
      ASSERT_TRUE(job.bootstrap->barrier());
      if (job.me == 0) {
        seen_yields = &yields;
        ASSERT_TRUE(team.sync());
        seen_yields = nullptr;
        is_busy = is_busy || !shmem::YieldWatch::of_this_thread().is_empty();
        EXPECT_TRUE(is_busy || yields == expected) << yields;
        return;
      }
      const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (yields < expected && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      ASSERT_TRUE(team.sync());
    });
  }
  EXPECT_FALSE(is_busy);
}

TEST(Broadcast, WhoGaveDataDoesNotYieldIfTheOthersHaveComeOrProcessorsAreNotShared) {
  for (const unsigned spins : {0U, 1000U}) {
    give_and_sync(spins, [](Job& job, Team& team, bool /*gave*/) {
      if (job.me == 0) {
        EXPECT_EQ(yields_of_last(job, team), 0U);
      } else {
        ASSERT_TRUE(job.bootstrap->barrier());
        ASSERT_TRUE(team.sync());
      }
    });
  }
}

class EagerChannelOf : public testing::TestWithParam<int> {};

/// Member 0 gives in each call, and no place is used again before all have read what is there.
template <Givers kGivers>
void give_in_places(int size, std::uint64_t places, std::size_t words = 1) {
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
        const std::vector<std::uint64_t> gift(words, call);
        ASSERT_TRUE(team.eager().give<kGivers>(
            words * sizeof call, [&](std::byte* to) { std::memcpy(to, gift.data(), words * sizeof call); }));
        for (const auto& other : done) {
          ASSERT_GE(other.load() + places, &other == &done[0] ? 0 : call);
        }
      } else {
        dawdle(random);
        const auto given = team.eager().take<kGivers>(0);
        ASSERT_TRUE(given);
        dawdle(random);
        ASSERT_EQ(number_in(given), call);
        ASSERT_EQ(number_in({given.data + (words - 1) * sizeof call, sizeof call}), call);
        ASSERT_EQ(given.size, words * sizeof call);
        done[static_cast<std::size_t>(job.me)] = call;
      }
      team.eager().end(EagerChannel::Begun::kUnknown);
    }
  });
}

TEST_P(EagerChannelOf, AValueStaysUntilTheOthersHaveReadIt) {
  give_in_places<Givers::kAll>(GetParam(), shmem::kEagerSlots);
}

TEST_P(EagerChannelOf, AValueOfALoneGiverStaysUntilTheOthersHaveReadIt) {
  give_in_places<Givers::kOne>(GetParam(), shmem::kBroadcastSlots);
}

TEST_P(EagerChannelOf, WhatAnAlltoallGivesStaysUntilTheOthersHaveReadIt) {
  give_in_places<Givers::kEach>(GetParam(), shmem::kEagerRooms, shmem::kAlltoallLimit / sizeof(std::uint64_t));
}

TEST_P(EagerChannelOf, AllMembersGetAllValues) {
  const int size = GetParam();
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    shmem::Members members{job, team.map(), team.me(), nullptr, 0};
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

// Data next to the word and data in a room take turns, and each stays until all have read it, whoever is ahead.
TEST_P(EagerChannelOf, DataOfAnySizeArrive) {
  const int size = GetParam();
  constexpr std::array<std::size_t, 9> kSizes{
      shmem::kEagerInline + 1, 0,   8, shmem::kEagerLimit, shmem::kBroadcastInline, shmem::kBroadcastInline + 1,
      shmem::kEagerInline,     700, 3};
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    EagerChannel& eager = team.eager();
    for (std::uint64_t call = 1; call <= 600; ++call) {
      dawdle(random);
      // Now and then all give; else one gives, and may run ahead.
      const bool all = call % 50 == 0;
      const int root = static_cast<int>(call / 60) % size;
      const std::size_t bytes = kSizes[call % kSizes.size()];
      ASSERT_TRUE(eager.begin());
      const auto write = [&](std::byte* to) {
        for (std::size_t i = 0; i < bytes; ++i) {
          to[i] = byte_of(job.me, call, i);
        }
      };
      if (all) {
        ASSERT_TRUE(eager.give(bytes, write));
      } else if (job.me == root) {
        ASSERT_TRUE(eager.give<Givers::kOne>(bytes, write));
      }
      for (int giver = 0; giver < size; ++giver) {
        if (!all && (giver != root || job.me == root)) {
          continue;
        }
        const auto given = all ? eager.take(giver) : eager.take<Givers::kOne>(giver);
        ASSERT_TRUE(given);
        dawdle(random);
        ASSERT_EQ(given.size, bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
          ASSERT_EQ(given.data[i], byte_of(giver, call, i)) << "call " << call << ", byte " << i << " of " << bytes;
        }
      }
      eager.end(all ? EagerChannel::Begun::kThis : EagerChannel::Begun::kUnknown);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, EagerChannelOf, testing::Values(1, 2, 3, 8, 40));

// PE 1 makes its first call when PE 0 has made all of its own.
TEST(SmallBroadcast, LetsItsRootBeManyCallsAhead) {
  for (const auto& [bytes, calls] :
       {std::pair{std::size_t{8}, shmem::kBroadcastSlots}, std::pair{shmem::kBroadcastInline, shmem::kBroadcastSlots},
        std::pair{shmem::kBroadcastInline + 1, shmem::kBroadcastRooms}}) {
    run_job(2, [bytes = bytes, calls = calls](Job& job) {
      LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
      ASSERT_TRUE(job.bootstrap->barrier());
      const EagerMembers eager(job, team, shmem::kEagerLimit);
      std::vector<std::byte> data(bytes);
      std::vector<std::byte> result(bytes);
      if (job.me == 1) {
        ASSERT_TRUE(job.bootstrap->barrier());
      }
      for (std::uint64_t call = 1; call <= calls; ++call) {
        std::fill(data.begin(), data.end(), byte_of(job.me, call, 0));
        ASSERT_TRUE(shmem::broadcast(eager.members, result.data(), data.data(), bytes, 0, true));
        ASSERT_EQ(std::count(result.begin(), result.end(), byte_of(0, call, 0)), bytes) << "call " << call;
      }
      if (job.me == 0) {
        ASSERT_TRUE(job.bootstrap->barrier());
      }
    });
  }
}

constexpr std::size_t kTooLarge = 1000;  // to be sent eagerly by the following

/// This PE's data and result of a broadcast.
struct BroadcastBuffers {
  explicit BroadcastBuffers(const Job& job)
      : data(job.memory.heap(job.me)), result(job.memory.heap(job.me) + kTooLarge) {}
  std::byte* data;
  std::byte* result;
};

// Whether a PE has returned, and how long a test waits for that at most.
bool becomes_true(const std::atomic<bool>& flag) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!flag && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return flag;
}

TEST(LargeBroadcast, LetsMembersGoWhenTheyHaveTheData) {
  std::array<std::atomic<bool>, 3> returned{};
  run_job(3, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, 3}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 96);
    const BroadcastBuffers buffers(job);
    std::fill_n(buffers.data, kTooLarge, byte_of(job.me, 1, 0));
    if (job.me == 2) {
      EXPECT_TRUE(becomes_true(returned[1])) << "PE 1 waits for another PE than the root";
      EXPECT_FALSE(returned[0]) << "the root does not wait for its readers";
    }
    ASSERT_TRUE(shmem::broadcast(eager.members, buffers.result, buffers.data, kTooLarge, 0, true));
    returned[static_cast<std::size_t>(job.me)] = true;
    EXPECT_EQ(buffers.result[kTooLarge - 1], byte_of(0, 1, 0));
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

TEST(LargeBroadcast, IsReadBeforeItsRootReturns) {
  constexpr int kPes = 4;
  run_job(kPes, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, kPes}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 96);
    const BroadcastBuffers buffers(job);
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (std::uint64_t call = 0; call < 400; ++call) {
      dawdle(random);
      // Roots in turn; small data between.
      const int root = static_cast<int>(call / 3) % kPes;
      const std::size_t bytes = call % 5 == 4 ? 8 : kTooLarge;
      std::fill_n(buffers.data, bytes, byte_of(job.me, call, 0));
      ASSERT_TRUE(shmem::broadcast(eager.members, buffers.result, buffers.data, bytes, root, true));
      std::fill_n(buffers.data, bytes, std::byte{});
      EXPECT_EQ(std::count(buffers.result, buffers.result + bytes, byte_of(root, call, 0)), bytes) << "call " << call;
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

// A member of a scan needs those before it only.
TEST(SmallScan, DoesNotWaitForLaterMembers) {
  run_job(2, [](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 96);
    const shmem::Members& members = eager.members;
    const shmem::Reduction join{sizeof(Range), join_ranges};
    Range mine{job.me, job.me}, result{};
    if (job.me == 0) {
      ASSERT_TRUE(shmem::scan(members, join, &result, &mine, 1, true));
    }
    ASSERT_TRUE(job.bootstrap->barrier());  // PE 1 begins when PE 0 has its result
    if (job.me == 1) {
      ASSERT_TRUE(shmem::scan(members, join, &result, &mine, 1, true));
    }
    EXPECT_EQ(result.first, 0);
    EXPECT_EQ(result.last, job.me);
  });
}

// Without data there is nothing to wait for: PE 1 makes none of these calls.
TEST(CallsWithoutData, MeetNobody) {
  run_job(2, [](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 96);
    const shmem::Members& members = eager.members;
    const shmem::Reduction join{sizeof(Range), join_ranges};
    Range mine{}, result{job.me, job.me};
    if (job.me == 0) {
      ASSERT_TRUE(shmem::broadcast(members, &result, &mine, 0, 1, true));
      ASSERT_TRUE(shmem::fcollect(members, &result, &mine, 0));
      ASSERT_TRUE(shmem::alltoall(members, &result, &mine, {.to_step = 8, .from_step = 8, .element = 8, .count = 0}));
      ASSERT_TRUE(shmem::reduce(members, join, &result, &mine, 0));
      ASSERT_TRUE(shmem::scan(members, join, &result, &mine, 0, true));
    }
    ASSERT_TRUE(job.bootstrap->barrier());
    EXPECT_EQ(result.first, job.me);
    // The next call with data is the first one of both.
    ASSERT_TRUE(shmem::broadcast(members, &result, &mine, sizeof mine, 1, true));
    EXPECT_EQ(result.first, 0);
  });
}

TEST(EagerChannel, NamesThePeItWaitedForAfterATimeout) {
  shmem_test::run_team_with_short_limit(3, [&](Job& job, Team& team) {
    if (job.me != 2) {
      ASSERT_TRUE(team.eager().begin());
      const auto given = team.eager().take(2);
      ASSERT_FALSE(given);
      const shmem::Error& error = team.eager().error();
      EXPECT_EQ(error.code, std::errc::timed_out);
      EXPECT_NE(error.text.find("collective call 1 of team 0"), std::string::npos) << error.text;
      EXPECT_NE(error.text.find("PE 2"), std::string::npos) << error.text;
      EXPECT_FALSE(team.eager().begin());
    }
    ASSERT_TRUE(job.bootstrap->barrier());
  });
}

}  // namespace
