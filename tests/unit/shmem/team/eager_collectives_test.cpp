// SPDX-License-Identifier: Apache-2.0
// Small collectives of teams of any size.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <tuple>
#include <vector>

#include "shmem/collective/members.hpp"
#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"
#include "shmem/team/local_team.hpp"
#include "tests/unit/shmem/short_limit_team.hpp"
#include "tests/unit/shmem/team/eager_members.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

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

/// With teams whose members have rooms for an alltoall, and without.
class Alltoall : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Alltoall, GivesEachMemberItsBlocks) {
  const auto [size, slot] = GetParam();
  const std::size_t others = static_cast<std::size_t>(size) - 1;
  // Next to the word, in a room, in a large one; as much as fits, a byte more for each, and a byte.
  const std::array<std::size_t, 8> blocks{shmem::kAlltoallLimit / others,
                                          8,
                                          shmem::kEagerLimit / others,
                                          shmem::kEagerLimit / others + 1,
                                          shmem::kEagerInline / others,
                                          shmem::kAlltoallLimit / others,
                                          1,
                                          shmem::kAlltoallLimit / others + 1};
  run_job(size, [&, slot = slot](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, job.size}, slot, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    EagerMembers eager(job, team, shmem::kAlltoallLimit);
    TeamBarrier barrier(team);
    eager.members.barrier = &barrier;
    std::minstd_rand random(static_cast<unsigned>(job.me) + 1);
    for (std::size_t call = 0; call < 5 * blocks.size(); ++call) {
      dawdle(random);
      const std::size_t block = blocks[call % blocks.size()];
      const auto count = static_cast<std::size_t>(job.size);
      // What `from` gives to `to`.
      const auto byte = [&](std::size_t from, std::size_t to, std::size_t i) {
        return byte_of(static_cast<int>(from), call, to * block + i);
      };
      std::byte* const mine = job.memory.heap(job.me);
      for (std::size_t i = 0; i < count * block; ++i) {
        mine[i] = byte(static_cast<std::size_t>(job.me), i / block, i % block);
      }
      std::vector<std::byte> taken(count * block);
      ASSERT_TRUE(shmem::alltoall(eager.members, taken.data(), mine, {block, block, block, 1}));
      // Calls of one giver use other places.
      std::uint64_t number = call;
      ASSERT_TRUE(shmem::broadcast(eager.members, &number, &number, sizeof number, 0, false));
      for (std::size_t i = 0; i < taken.size(); ++i) {
        ASSERT_EQ(taken[i], byte(i / block, static_cast<std::size_t>(job.me), i % block))
            << "call " << call << ", byte " << i << " of blocks of " << block;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Teams, Alltoall,
                         testing::Combine(testing::Values(2, 4, 7, 33), testing::Values(0, shmem::kBroadcastTeams)));

/// Only one meeting: a member that has what the others give does not wait until they have what it gives.
TEST(AlltoallInRooms, MeetsOnce) {
  run_job(4, [](Job& job) {
    LocalTeam team(job, TeamMap{0, 1, 4}, 0, 0);
    ASSERT_TRUE(job.bootstrap->barrier());
    const EagerMembers eager(job, team, shmem::kAlltoallLimit);  // no barrier
    constexpr std::size_t kBlock = 2048;
    std::vector<std::byte> given(4 * kBlock, static_cast<std::byte>(job.me)), taken(4 * kBlock);
    for (int call = 0; call < 20; ++call) {
      ASSERT_TRUE(shmem::alltoall(eager.members, taken.data(), given.data(), {kBlock, kBlock, kBlock, 1}));
      for (std::size_t member = 0; member < 4; ++member) {
        ASSERT_EQ(taken[member * kBlock + kBlock - 1], static_cast<std::byte>(member));
      }
    }
  });
}

}  // namespace
