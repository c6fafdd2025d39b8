// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/eager.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>

#include "shmem/collective/members.hpp"
#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/short_limit_team.hpp"
#include "tests/unit/shmem/thread_job.hpp"

// Counted here; then as the C library does it.
static thread_local unsigned yields_of_thread = 0;
extern "C" int sched_yield() noexcept {
  ++yields_of_thread;
  return static_cast<int>(::syscall(SYS_sched_yield));
}

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

/// The members of a team whose calls send up to `limit` bytes eagerly.
struct EagerMembers {
  EagerMembers(Job& job, Team& team, std::size_t limit) : members{job, team.map(), team.me(), nullptr, 0} {
    choice.fill({.eager = limit, .scatter_allgather = 2049});
    members.eager = &team.eager();
    members.choice = &choice;
  }
  EagerMembers(const EagerMembers&) = delete;
  EagerMembers& operator=(const EagerMembers&) = delete;

  shmem::CollectiveChoice choice{};
  shmem::Members members;
};

/// The yields of a barrier for which all others have come.
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

TEST(Broadcast, WhoGaveDataYieldsBeforeItsNextBarrierIfProcessorsAreShared) {
  for (const unsigned spins : {0U, 1000U}) {
    run_job(2, [spins](Job& job) {
      job.policy.spins = spins;
      LocalTeam team(job, TeamMap{0, 1, 2}, 0, 0);
      ASSERT_TRUE(job.bootstrap->barrier());
      const EagerMembers all(job, team, shmem::kEagerLimit);
      long to = 0;
      const long from = 42;
      ASSERT_TRUE(shmem::broadcast(all.members, &to, &from, sizeof to, 0, true));
      EXPECT_EQ(to, 42);
      for (const unsigned expected : {spins == 0 ? 1U : 0U, 0U}) {
        if (job.me == 0) {
          EXPECT_EQ(yields_of_last(job, team), expected) << spins;
        } else {
          ASSERT_TRUE(job.bootstrap->barrier());
          ASSERT_TRUE(team.sync());
        }
      }
    });
  }
}

class EagerChannelOf : public testing::TestWithParam<int> {};

TEST_P(EagerChannelOf, AValueStaysUntilTheOthersHaveReadIt) {
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
          // The slots are used in turn: this one was last used kEagerSlots calls ago.
          ASSERT_GE(other.load() + shmem::kEagerSlots, &other == &done[0] ? 0 : call);
        }
      } else {
        dawdle(random);
        const auto given = team.eager().take(0);
        ASSERT_TRUE(given);
        dawdle(random);
        ASSERT_EQ(number_in(given), call);
        ASSERT_EQ(given.size, sizeof call);
        done[static_cast<std::size_t>(job.me)] = call;
      }
      team.eager().end(EagerChannel::Begun::kUnknown);
    }
  });
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

/// Bytes of a gift that differ by giver, call and place.
std::byte byte_of(int giver, std::uint64_t call, std::size_t i) {
  return static_cast<std::byte>(static_cast<std::size_t>(giver) * 31 + call * 7 + i * 3);
}

// Data next to the word and data in a room take turns, and each stays until all have read it, whoever is ahead.
TEST_P(EagerChannelOf, DataOfAnySizeArrive) {
  const int size = GetParam();
  constexpr std::array<std::size_t, 7> kSizes{shmem::kEagerInline + 1, 0,   8, shmem::kEagerLimit,
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
      if (all || job.me == root) {
        ASSERT_TRUE(eager.give(bytes, [&](std::byte* to) {
          for (std::size_t i = 0; i < bytes; ++i) {
            to[i] = byte_of(job.me, call, i);
          }
        }));
      }
      for (int giver = 0; giver < size; ++giver) {
        if (!all && (giver != root || job.me == root)) {
          continue;
        }
        const auto given = eager.take(giver);
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

/// A range of members. Two ranges that are not consecutive combine to {-1, -1}.
struct Range {
  std::int64_t first, last;
};
void join_ranges(void* to, const void* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    auto& left = static_cast<Range*>(to)[i];
    const auto& right = static_cast<const Range*>(from)[i];
    left = left.first >= 0 && left.last + 1 == right.first ? Range{left.first, right.last} : Range{-1, -1};
  }
}

class SmallReduction : public testing::TestWithParam<int> {};

TEST_P(SmallReduction, CombinesInTheOrderOfTheMembers) {
  const int size = GetParam();
  const shmem::Reduction join{sizeof(Range), join_ranges};
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 96);
    const shmem::Members& members = eager.members;
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    constexpr std::size_t kCount = 3;
    for (std::int64_t call = 0; call < 20; ++call) {
      dawdle(random);
      const std::int64_t shift = 1000 * call;
      std::array<Range, kCount> mine{}, result{};
      mine.fill({shift + job.me, shift + job.me});
      const auto expect = [&](std::int64_t first, std::int64_t last) {
        for (const Range& range : result) {
          EXPECT_EQ(range.first, first) << "PE " << job.me << ", call " << call;
          EXPECT_EQ(range.last, last) << "PE " << job.me << ", call " << call;
        }
      };
      ASSERT_TRUE(shmem::reduce(members, join, result.data(), mine.data(), kCount));
      expect(shift, shift + size - 1);
      ASSERT_TRUE(shmem::scan(members, join, result.data(), mine.data(), kCount, true));
      expect(shift, shift + job.me);
      ASSERT_TRUE(shmem::scan(members, join, mine.data(), mine.data(), kCount, false));
      result = mine;
      expect(job.me == 0 ? 0 : shift, job.me == 0 ? 0 : shift + job.me - 1);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallReduction, testing::Values(2, 7, 32, 33, 36, 41));

/// The channel of one member of 40, alone: the test gives in the place of the others. Only those in `givers[call]` do;
/// the member fails when it waits for another one.
class OneOfMany {
 public:
  static constexpr int kMembers = 40;  // in groups of 7
  using Givers = std::array<std::vector<int>, 2>;

  /// In call i a giver gives `gifts[i]` bytes.
  static void run(int me, const Givers& givers, const std::array<std::size_t, 2>& gifts,
                  const std::function<void(const shmem::Members&)>& body) {
    shmem_test::run_team_with_short_limit(kMembers, [&](Job& job, Team& team) {
      if (job.me == me) {
        for (std::size_t call = 0; call < givers.size(); ++call) {
          for (const int giver : givers[call]) {
            shmem::EagerSlot& slot = job.eager_words(0, giver).place[call + 1];
            slot.size = gifts[call];
            slot.value = call + 1;
          }
        }
        const EagerMembers eager(job, team, 96);
        const shmem::Members& members = eager.members;
        body(members);
      }
      ASSERT_TRUE(job.bootstrap->barrier());
    });
  }
};

constexpr std::array kLeaders{0, 7, 14, 21, 28, 35};
/// Who gives to member 8, which leads nothing, and to member 7, which leads 7 to 13; each takes its own gift, too.
const OneOfMany::Givers kToMember{{{}, {kLeaders.begin(), kLeaders.end()}}};
const OneOfMany::Givers kToLeader{{{8, 9, 10, 11, 12, 13}, {0, 14, 21, 28, 35}}};

TEST(ManyMembers, ReadTheirGroupAndTheLeadersOnly) {
  const shmem::Reduction sum{sizeof(std::uint64_t), [](void* to, const void* from, std::size_t) {
                               *static_cast<std::uint64_t*>(to) += *static_cast<const std::uint64_t*>(from);
                             }};
  std::uint64_t mine = 1, all = 0;
  OneOfMany::run(8, kToMember, {8, 8},
                 [&](const shmem::Members& members) { EXPECT_TRUE(shmem::reduce(members, sum, &all, &mine, 1)); });
  OneOfMany::run(7, kToLeader, {8, 8},
                 [&](const shmem::Members& members) { EXPECT_TRUE(shmem::reduce(members, sum, &all, &mine, 1)); });
  std::array<std::uint64_t, OneOfMany::kMembers> together{};
  OneOfMany::run(8, kToMember, {8, 40}, [&](const shmem::Members& members) {
    EXPECT_TRUE(shmem::fcollect(members, together.data(), &mine, sizeof mine));
  });
  OneOfMany::run(7, kToLeader, {8, 40}, [&](const shmem::Members& members) {
    EXPECT_TRUE(shmem::fcollect(members, together.data(), &mine, sizeof mine));
  });
}

TEST(ManyMembers, OfAScanReadWhatIsBeforeThemOnly) {
  const shmem::Reduction sum{sizeof(std::uint64_t), [](void* to, const void* from, std::size_t) {
                               *static_cast<std::uint64_t*>(to) += *static_cast<const std::uint64_t*>(from);
                             }};
  std::uint64_t mine = 1, before = 0;
  const auto scan = [&](bool inclusive) {
    return [&, inclusive](const shmem::Members& members) {
      EXPECT_TRUE(shmem::scan(members, sum, &before, &mine, 1, inclusive));
    };
  };
  OneOfMany::run(8, {{{7}, {0}}}, {8, 8}, scan(true));
  OneOfMany::run(8, {{{7}, {0}}}, {8, 8}, scan(false));
  OneOfMany::run(13, {{{}, {0, 7}}}, {8, 8}, scan(true));  // the last one of its group, whose leader has the sum
  OneOfMany::run(7, {{{8, 9, 10, 11, 12, 13}, {0}}}, {8, 8}, scan(true));
  OneOfMany::run(39, {{{35, 36, 37, 38}, {0, 7, 14, 21, 28}}}, {8, 8}, scan(false));
}

TEST(ManyMembers, MayHaveCachesOfAnySize) {
  constexpr int kMembers = 45;
  const shmem::Reduction join{sizeof(Range), join_ranges};
  std::array<std::atomic<int>, kMembers> arrived{};
  run_job(kMembers, [&](Job& job) {
    for (int pe = 0; pe < kMembers; ++pe) {
      job.locations.push_back({.cache = 1 + (pe + 3) / 7, .socket = 1 + (pe + 3) / 21});
    }
    LocalTeam team(job, TeamMap{0, 1, kMembers}, 0, 0);
    ASSERT_TRUE(team.view().runs()->several());
    ASSERT_TRUE(job.bootstrap->barrier());
    ASSERT_TRUE(team.agree_on_algorithm({.algorithm = shmem::Algorithm::kHierarchical}));
    const EagerMembers eager(job, team, shmem::kEagerLimit);
    for (int call = 1; call <= 10; ++call) {
      arrived[static_cast<std::size_t>(job.me)] = call;
      ASSERT_TRUE(team.sync());
      for (const auto& other : arrived) {
        ASSERT_GE(other, call);
      }
      const Range mine{job.me, job.me};
      Range result{};
      ASSERT_TRUE(shmem::reduce(eager.members, join, &result, &mine, 1));
      ASSERT_EQ(result.last - result.first, kMembers - 1);
      ASSERT_TRUE(shmem::scan(eager.members, join, &result, &mine, 1, true));
      ASSERT_EQ(result.last, job.me);
      std::array<std::int32_t, kMembers> all{};
      ASSERT_TRUE(shmem::fcollect(eager.members, all.data(), &job.me, sizeof job.me));
      ASSERT_TRUE(std::ranges::is_sorted(all, std::ranges::less_equal{}));
      ASSERT_EQ(all.back(), kMembers - 1);
    }
  });
}

/// Contents of any length, 0 included, next to each other in the order of the members.
class AnyTotal final : public shmem::CheckTotal {
 public:
  explicit AnyTotal(std::size_t most) : most_(most) {}
  shmem::Result<void> operator()(std::size_t total) const override {
    return total <= most_ ? shmem::Result<void>() : shmem::fail(std::errc::value_too_large, "too much");
  }

 private:
  std::size_t most_;
};

class TeamBarrier final : public shmem::MemberBarrier {
 public:
  explicit TeamBarrier(Team& team) : team_(team) {}
  shmem::Result<void> sync() override { return team_.sync(); }
  shmem::Result<std::vector<std::uint64_t>> allgather(std::uint64_t /*mine*/) override {
    return std::vector<std::uint64_t>();
  }

 private:
  Team& team_;
};

class AnyCollect : public testing::TestWithParam<int> {};

TEST_P(AnyCollect, PutsContentsOfAnyLengthInOrder) {
  const int size = GetParam();
  // Those of a group fit, do not fit together, are partly or all too long for a gift.
  constexpr std::array<std::size_t, 5> kMost{20, 300, 1024, 3000, 1};
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    EagerMembers eager(job, team, shmem::kEagerLimit);
    TeamBarrier barrier(team);
    eager.members.barrier = &barrier;
    for (std::size_t call = 0; call < 2 * kMost.size(); ++call) {
      const auto length = [&](int member) {
        return (static_cast<std::size_t>(member) * 37 + call * 101) % kMost[call % kMost.size()];
      };
      std::byte* const mine = job.memory.heap(job.me) + call * 4096;
      std::vector<std::byte> expected;
      for (int member = 0; member < size; ++member) {
        for (std::size_t i = 0; i < length(member); ++i) {
          expected.push_back(byte_of(member, call, i));
        }
      }
      for (std::size_t i = 0; i < length(job.me); ++i) {
        mine[i] = byte_of(job.me, call, i);
      }
      std::vector<std::byte> all(expected.size() + 1);
      const AnyTotal fits(expected.size());
      ASSERT_TRUE(shmem::collect(eager.members, all.data(), mine, length(job.me), fits));
      all.pop_back();
      ASSERT_EQ(all, expected) << "call " << call;
      if (!expected.empty()) {
        const AnyTotal does_not_fit(expected.size() - 1);
        ASSERT_FALSE(shmem::collect(eager.members, all.data(), mine, length(job.me), does_not_fit));
        ASSERT_EQ(all, expected) << "written although it does not fit";
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, AnyCollect, testing::Values(2, 7, 33, 41));

TEST_P(SmallReduction, TakesMoreThanIsEager) {
  const int size = GetParam();
  const shmem::Reduction join{sizeof(Range), join_ranges};
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    EagerMembers eager(job, team, shmem::kEagerLimit);
    TeamBarrier barrier(team);
    eager.members.barrier = &barrier;
    auto* const data = reinterpret_cast<Range*>(job.memory.heap(job.me));
    for (const std::size_t count : {65, 100, 128}) {
      std::fill_n(data, count, Range{job.me, job.me});
      ASSERT_TRUE(shmem::reduce(eager.members, join, data, data, count));  // in place
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(data[i].first, 0) << i << " of " << count;
        ASSERT_EQ(data[i].last, size - 1) << i << " of " << count;
      }
      ASSERT_TRUE(team.sync());
    }
  });
}

class SmallFcollect : public testing::TestWithParam<int> {};

TEST_P(SmallFcollect, PutsEveryMembersDataInItsPlace) {
  const int size = GetParam();
  run_job(size, [&](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, size}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, 200);
    const shmem::Members& members = eager.members;
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (std::uint64_t call = 0; call < 40; ++call) {
      dawdle(random);
      const std::size_t bytes = std::array<std::size_t, 4>{8, 1, 100, 170}[call % 4];
      std::vector<std::byte> mine(bytes), all(bytes * static_cast<std::size_t>(size));
      for (std::size_t i = 0; i < bytes; ++i) {
        mine[i] = byte_of(job.me, call, i);
      }
      ASSERT_TRUE(shmem::fcollect(members, all.data(), mine.data(), bytes));
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(all[i], byte_of(static_cast<int>(i / bytes), call, i % bytes)) << "call " << call << ", byte " << i;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, SmallFcollect, testing::Values(2, 7, 32, 33, 36, 41));

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
