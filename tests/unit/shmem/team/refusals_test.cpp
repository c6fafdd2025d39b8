// SPDX-License-Identifier: Apache-2.0
// Votes of leaders by barriers that carry no data.
#include "shmem/team/refusals.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/board_network.hpp"
#include "tests/unit/shmem/thread_job.hpp"

namespace {

using shmem::Job;
using shmem::ProcessGroup;
using shmem::Refusals;
using shmem_test::BoardNetwork;

constexpr int kSlot = 3;  // of leader 0; each has another one

struct Leader {
  Job& job;
  ProcessGroup& group;
  const std::vector<int>& pes;

  [[nodiscard]] int me() const { return group.me(); }
  [[nodiscard]] std::optional<Refusals> make(int slot, std::uint32_t team) const {
    auto made = Refusals::create(job, group, pes, slot, team);
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  [[nodiscard]] int vote(Refusals& refusals, bool refuse) const {
    const auto other = refusals.vote(refuse ? me() : -1, [this] { return group.barrier(); });
    EXPECT_TRUE(other) << other.error().text;
    return other.value_or(-2);
  }
};

void run_leaders(int size, const std::function<void(Leader&)>& body) {
  shmem_test::Wires wires;
  wires.latest = std::chrono::microseconds{50};
  std::deque<shmem::RemoteBoard> boards(static_cast<std::size_t>(size));
  std::vector<int> pes(static_cast<std::size_t>(size));
  std::iota(pes.begin(), pes.end(), 0);
  shmem_test::run_job(size, [&](Job& job) {
    BoardNetwork network(wires, job.me, boards);
    ProcessGroup group(network, pes, job.me, 7);
    job.network = &network;
    job.remote_board = &boards[static_cast<std::size_t>(job.me)];
    Leader leader{job, group, pes};
    body(leader);
  });
}

/// Each vote has its own refusers, the same by the same numbers on all leaders.
TEST(Refusals, AreKnownToAllAfterTheirBarrierAndToNobodyAfterwards) {
  constexpr int kLeaderCount = 4;
  const int votes = test_support::repeats(300, 20'000);
  run_leaders(kLeaderCount, [&](Leader& leader) {
    std::minstd_rand common(7);
    auto refusals = leader.make(kSlot + leader.me(), 1);
    ASSERT_TRUE(refusals);
    for (int vote = 0; vote < votes; ++vote) {
      const unsigned refusers = common() % 3 == 0 ? static_cast<unsigned>(common()) % (1U << kLeaderCount) : 0;
      const int named = leader.vote(*refusals, (refusers >> leader.me() & 1) != 0);
      ASSERT_EQ(named >= 0, refusers != 0) << vote;
      ASSERT_TRUE(named < 0 || (refusers >> named & 1) != 0) << named << " of " << refusers;
    }
  });
}

TEST(Refusals, OfAnEarlierTeamDoNotCount) {
  run_leaders(2, [](Leader& leader) {
    auto old = leader.make(kSlot, 1);
    ASSERT_TRUE(old);
    const std::uint64_t late = std::uint64_t{1} << 32 | 1;  // PE 0 refused in team 1
    for (auto& word : (*leader.job.remote_board)[kSlot].refused) {
      word = late;
    }
    auto next = leader.make(kSlot, 2);
    ASSERT_TRUE(next);
    EXPECT_EQ(leader.vote(*next, false), -1);
    for (auto& word : (*leader.job.remote_board)[kSlot].refused) {
      word = late;
    }  // arrives later still
    EXPECT_EQ(leader.vote(*next, false), -1);
    EXPECT_EQ(leader.vote(*next, leader.me() == 1), 1);
  });
}

TEST(Refusals, NeedAPlaceOnTheBoardOfEachLeader) {
  run_leaders(3, [](Leader& leader) {
    constexpr int kPlaces = std::tuple_size_v<shmem::RemoteBoard>;
    EXPECT_FALSE(leader.make(leader.me() == 1 ? kPlaces : kSlot, 1));
    EXPECT_TRUE(leader.make(leader.me() == 1 ? kPlaces - 1 : kSlot, 1));
  });
}

}  // namespace
