// SPDX-License-Identifier: Apache-2.0
// The leaders of nodes meet through a device that fails: no barrier is lost, none ends early, and all leave the device
// at the same one. They have no memory in common but for what the network reaches.
#include "shmem/barrier/gba_span.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <thread>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/fake_gba.hpp"
#include "tests/unit/shmem/thread_network.hpp"

namespace {

using namespace std::chrono_literals;
using shmem::AtomicOperation;
using shmem::FarArrival;
using shmem::FarBoard;
using shmem::FarPlace;
using shmem::GbaMember;
using shmem::GbaPort;
using shmem::GbaSpan;
using shmem::LeaderGroup;
using shmem::Result;

constexpr int kSlot = 5;  // of member 0; the others have other ones

/// Reaches the boards of all, where messages are not enough. What is posted is done late: with the next quiet().
class BoardNetwork : public shmem_test::ThreadNetwork {
 public:
  BoardNetwork(shmem_test::Wires& wires, int me, std::deque<FarBoard>& boards)
      : ThreadNetwork(wires, me, 20s), boards_(boards) {}

  Result<std::uint64_t> fetch_atomic(const FarPlace& place, std::size_t size, AtomicOperation operation,
                                     std::uint64_t /*operand*/, std::uint64_t /*compared*/) override {
    EXPECT_TRUE(size == 8 && operation == AtomicOperation::kFetch && place.segment == shmem::Segment::kBoard);
    return std::atomic_ref(at(place)).load(std::memory_order_acquire);
  }
  Result<void> post_atomic(const FarPlace& place, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override {
    EXPECT_TRUE(size == 8 && operation == AtomicOperation::kSet && place.segment == shmem::Segment::kBoard);
    posted_.emplace_back(place, operand);
    return {};
  }
  Result<void> quiet() override {
    for (const auto& [place, value] : posted_) {
      std::this_thread::sleep_for(20us);
      std::atomic_ref(at(place)).store(value, std::memory_order_release);
    }
    posted_.clear();
    return {};
  }

 private:
  std::uint64_t& at(const FarPlace& place) {
    auto* const bytes = reinterpret_cast<std::byte*>(&boards_[static_cast<std::size_t>(place.pe)]);
    return *reinterpret_cast<std::uint64_t*>(bytes + place.offset);
  }

  std::deque<FarBoard>& boards_;
  std::vector<std::pair<FarPlace, std::uint64_t>> posted_;
};

struct Leader {
  GbaSpan& span;
  LeaderGroup& leaders;
  GbaPort& port;
  int me;
  std::function<bool()> barrier;  // as the team does it; false: somebody had not come
  [[nodiscard]] GbaMember wanting() const {
    return {&port, "", true, {}, 5s};  // so long a device that was lost may take to come back
  }
};

/// Runs `body` on all of them, as threads.
void run_leaders(int size, const std::function<void(Leader&)>& body, std::chrono::milliseconds limit = 20s) {
  shmem_test::Wires wires;
  std::deque<FarBoard> boards(static_cast<std::size_t>(size));
  std::vector<std::atomic<std::uint64_t>> entered(static_cast<std::size_t>(size));
  std::vector<int> pes;
  for (int i = 0; i < size; ++i) pes.push_back(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      BoardNetwork network(wires, i, boards);
      LeaderGroup leaders(network, pes, i, 7);
      GbaPort port([] { return shmem::open_gba(0); });
      ASSERT_TRUE(port.open());
      GbaSpan span({.network = network,
                    .leaders = leaders,
                    .pes = pes,
                    .board = boards[static_cast<std::size_t>(i)],
                    .slot = kSlot + i,
                    .policy = shmem::wait_policy(size),
                    .name = [](int pe) { return "PE " + std::to_string(pe); },
                    .check = [] { return Result<void>{}; },
                    .limit = limit});
      std::uint64_t k = 0;
      const auto barrier = [&] {
        entered[static_cast<std::size_t>(i)].store(++k, std::memory_order_relaxed);
        const auto ok = span.active() ? span.meet() : leaders.barrier();
        EXPECT_TRUE(ok) << ok.error().text;
        return std::all_of(entered.begin(), entered.end(),
                           [&](const auto& theirs) { return theirs.load(std::memory_order_relaxed) >= k; });
      };
      Leader leader{span, leaders, port, i, barrier};
      body(leader);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(GbaSpan, IsReleasedByTheDeviceAsLongAsItLives) {
  fake_gba::power_on(32);
  run_leaders(4, [](Leader& leader) {
    ASSERT_TRUE(leader.span.join(leader.wanting()));
    ASSERT_TRUE(leader.span.active()) << leader.span.reason();
    for (int k = 0; k < 200; ++k) ASSERT_TRUE(leader.barrier());
    EXPECT_EQ(leader.span.served(), 200U);
    EXPECT_TRUE(leader.span.dissolve());
    EXPECT_FALSE(leader.span.active());
  });
  EXPECT_EQ(fake_gba::releases(), 200U);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

/// Barriers until something has gone wrong, and some more; all must leave the device at the same one, or they hang.
void run_through(int size, const std::function<void()>& cause) {
  std::atomic<int> early{0};
  std::vector<std::atomic<int>> left_at(static_cast<std::size_t>(size));
  fake_gba::power_on(32);
  cause();
  run_leaders(size, [&](Leader& leader) {
    ASSERT_TRUE(leader.span.join(leader.wanting()));
    int k = 0;
    for (; leader.span.active(); ++k) early += leader.barrier() ? 0 : 1;
    left_at[static_cast<std::size_t>(leader.me)] = k;
    for (int more = 0; more < 3; ++more) early += leader.barrier() ? 0 : 1;
    EXPECT_TRUE(leader.span.dissolve());
  });
  EXPECT_EQ(early, 0);
  for (const auto& k : left_at) EXPECT_EQ(k, left_at.front());
  EXPECT_GT(left_at.front(), 0);
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
}

TEST(GbaSpan, LosesNoBarrierWhenTheDeviceDies) {
  for (int i = 0; i < test_support::repeats(20, 500); ++i) {
    run_through(2 + i % 4, [] { fake_gba::lose_device_at_random(60); });
  }
}

TEST(GbaSpan, LosesNoBarrierWhenLeadersLoseTheirWayToTheDevice) {
  for (int i = 0; i < test_support::repeats(20, 1000); ++i) {
    run_through(2 + i % 4, [] { fake_gba::lose_members(40); });
  }
}

TEST(GbaSpan, AReleasedLeaderAnswersWhateverItDoes) {
  // Member 1 is let go alone, and does not come to the next barrier before member 0 is through.
  for (int i = 0; i < test_support::repeats(10, 200); ++i) {
    fake_gba::power_on(32);
    fake_gba::lose_members(3);
    std::array<std::atomic<int>, 2> over{};
    run_leaders(2, [&](Leader& leader) {
      ASSERT_TRUE(leader.span.join(leader.wanting()));
      for (int k = 1; k <= 20; ++k) {
        EXPECT_TRUE(leader.barrier());
        over[static_cast<std::size_t>(leader.me)] = k;
        while (over[static_cast<std::size_t>(1 - leader.me)] < k && !testing::Test::HasFailure()) {
          std::this_thread::yield();
        }
      }
    });
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

TEST(GbaSpan, TakesANewGroupInTheSamePlaceAndNoOldWordForANewOne) {
  fake_gba::power_on(32);
  fake_gba::return_at_open(0);
  std::atomic<int> early{0};
  run_leaders(3, [&](Leader& leader) {
    for (int group = 0; group < 10; ++group) {
      ASSERT_TRUE(leader.span.join(leader.wanting()));
      ASSERT_TRUE(leader.span.active()) << leader.span.reason() << " in group " << group;
      for (int k = 0; k < 1 + group % 3; ++k) early += leader.barrier() ? 0 : 1;
      if (leader.me == group % 3) fake_gba::lose_device();
      while (leader.span.active()) early += leader.barrier() ? 0 : 1;
      early += leader.barrier() ? 0 : 1;
    }
  });
  EXPECT_EQ(early, 0);
}

TEST(GbaSpan, IsAllOrNobodyAndSaysWhoWouldNot) {
  fake_gba::power_on(32);
  run_leaders(3, [](Leader& leader) {
    GbaMember member = leader.wanting();
    if (leader.me == 2) member = {nullptr, "no device here", true, {}, 1ms};
    ASSERT_TRUE(leader.span.join(member));
    EXPECT_FALSE(leader.span.active());
    EXPECT_EQ(leader.span.reason(), "PE 2: no device here");
    EXPECT_TRUE(leader.barrier());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  fake_gba::refuse_member(1);
  run_leaders(3, [](Leader& leader) {
    ASSERT_TRUE(leader.span.join(leader.wanting()));
    EXPECT_FALSE(leader.span.active());
    EXPECT_EQ(leader.span.reason(), "PE 1: lost");
    EXPECT_TRUE(leader.barrier());
  });
  EXPECT_EQ(fake_gba::groups_in_use(), 0);
  fake_gba::power_on(0);
  run_leaders(2, [](Leader& leader) {
    ASSERT_TRUE(leader.span.join(leader.wanting()));
    EXPECT_EQ(leader.span.reason(), "PE 0: all groups are taken");
  });
}

TEST(GbaSpan, NamesTheWaitThatTookTooLong) {
  fake_gba::power_on(32);
  std::atomic<bool> seen{false};
  run_leaders(
      2,
      [&](Leader& leader) {
        ASSERT_TRUE(leader.span.join(leader.wanting()));
        if (leader.me == 0) {
          const auto ok = leader.span.meet();
          ASSERT_FALSE(ok);
          EXPECT_EQ(ok.error().code, std::errc::timed_out);
          EXPECT_NE(ok.error().text.find("still missing: PE 1"), std::string::npos) << ok.error().text;
          seen = true;
        }
        while (!seen && !testing::Test::HasFailure()) std::this_thread::yield();
      },
      50ms);
}

}  // namespace
