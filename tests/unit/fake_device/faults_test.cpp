// SPDX-License-Identifier: Apache-2.0
// Flag stores and interrupts that pass through injected faults.
#include "fake_device/faults.hpp"

#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device::Faults;
using fake_device::kAlways;
using fake_device::kNever;
using fake_device_test::raise;
using fake_device_test::RecordingEffects;
using fake_device_test::store;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr unsigned kGroup = 3;

/// Port p is member p + 10 of every group.
class FaultsTest : public ::testing::Test {
 protected:
  bool store_to(unsigned port, std::uint64_t word, unsigned group = kGroup) {
    return faults_.store_flag(port, group, 0x1000, word);
  }
  std::vector<fake_device_test::Event> run_at(fake_device::Time now) {
    faults_.set_time(now);
    failed_ = faults_.run();
    return world_.take();
  }

  RecordingEffects world_;
  Faults faults_{world_, 8, [](unsigned port, unsigned) { return static_cast<int>(port) + 10; }};
  std::vector<Faults::FailedStore> failed_;
};

TEST_F(FaultsTest, LetEverythingPassIfNoneIsArmed) {
  EXPECT_TRUE(store_to(1, 5));
  faults_.raise(1, kGroup);
  EXPECT_THAT(world_.take(), ElementsAre(store(1, kGroup, 5), raise(1, kGroup)));
  EXPECT_EQ(faults_.next_deadline(), kNever);
  EXPECT_FALSE(faults_.touches_arrivals());
}

TEST_F(FaultsTest, DropAsManyAsRequested) {
  faults_.arm({.kind = GBA_INJECT_DROP_RELEASE, .count = 2});
  EXPECT_TRUE(store_to(1, 5));
  EXPECT_TRUE(store_to(2, 5));
  EXPECT_THAT(world_.take(), IsEmpty());
  EXPECT_TRUE(store_to(1, 5));
  EXPECT_THAT(world_.take(), SizeIs(1));
  EXPECT_EQ(faults_.struck(), 2U);
  EXPECT_EQ(faults_.armed(), 0U);
}

TEST_F(FaultsTest, StrikeOnlyTheRequestedTarget) {
  faults_.arm({.kind = GBA_INJECT_DROP_RELEASE, .group = kGroup, .member = 12, .count = kAlways});
  store_to(1, 5);
  store_to(2, 5, kGroup + 1);
  EXPECT_THAT(world_.take(), SizeIs(2));
  store_to(2, 5);
  store_to(2, 5);
  EXPECT_THAT(world_.take(), IsEmpty());
  faults_.clear();
  faults_.arm({.kind = GBA_INJECT_DROP_RELEASE, .port = 4});
  store_to(3, 5);
  store_to(4, 5);
  EXPECT_THAT(world_.take(), ElementsAre(store(3, kGroup, 5)));
}

TEST_F(FaultsTest, SkipTheRequestedNumberFirst) {
  faults_.arm({.kind = GBA_INJECT_DROP_RELEASE, .count = 1, .after = 2});
  for (std::uint64_t word = 1; word <= 4; ++word) {
    store_to(1, word);
  }
  EXPECT_THAT(world_.take(), ElementsAre(store(1, kGroup, 1), store(1, kGroup, 2), store(1, kGroup, 4)));
}

TEST_F(FaultsTest, DuplicateAStore) {
  faults_.arm({.kind = GBA_INJECT_DUPLICATE_RELEASE});
  EXPECT_TRUE(store_to(1, 5));
  EXPECT_THAT(world_.take(), ElementsAre(store(1, kGroup, 5), store(1, kGroup, 5)));
}

TEST_F(FaultsTest, FailAStore) {
  faults_.arm({.kind = GBA_INJECT_DMA_FAULT});
  EXPECT_FALSE(store_to(1, 5));
  EXPECT_TRUE(store_to(1, 5));
}

TEST_F(FaultsTest, DropAnInterrupt) {
  faults_.arm({.kind = GBA_INJECT_DROP_INTERRUPT, .group = kGroup});
  faults_.raise(1, kGroup + 1);
  faults_.raise(1, kGroup);
  EXPECT_THAT(world_.take(), ElementsAre(raise(1, kGroup + 1)));
}

TEST_F(FaultsTest, SlowCommandsOfOnePort) {
  faults_.set_time(100);
  faults_.arm({.kind = GBA_INJECT_SLOW_COMMAND, .port = 1, .time = 50});
  EXPECT_EQ(faults_.command_done(2), 0U);
  EXPECT_EQ(faults_.command_done(1), 150U);
  EXPECT_EQ(faults_.command_done(1), 0U) << "once";
  faults_.arm({.kind = GBA_INJECT_SLOW_COMMAND, .time = GBA_DEBUG_ANY});
  EXPECT_EQ(faults_.command_done(1), kNever - 1) << "not 0, which is at once";
}

TEST_F(FaultsTest, DelayAStoreAndLaterOnesToThatPort) {
  faults_.set_time(100);
  faults_.arm({.kind = GBA_INJECT_DELAY_RELEASE, .port = 1, .time = 50});
  store_to(1, 5);
  faults_.raise(1, kGroup);
  store_to(1, 6);
  store_to(2, 5);
  EXPECT_THAT(world_.take(), ElementsAre(store(2, kGroup, 5))) << "other ports are not delayed";
  EXPECT_EQ(faults_.next_deadline(), 150U);
  EXPECT_THAT(run_at(149), IsEmpty());
  EXPECT_THAT(run_at(150), ElementsAre(store(1, kGroup, 5), raise(1, kGroup), store(1, kGroup, 6)));
  EXPECT_EQ(faults_.next_deadline(), kNever);
  store_to(1, 7);
  EXPECT_THAT(world_.take(), SizeIs(1)) << "no store is delayed any more";
}

TEST_F(FaultsTest, ReportADelayedStoreThatFails) {
  faults_.arm({.kind = GBA_INJECT_DELAY_RELEASE, .time = 50});
  EXPECT_TRUE(store_to(1, 5));
  world_.broken.insert(1);
  EXPECT_THAT(run_at(50), IsEmpty());
  ASSERT_THAT(failed_, SizeIs(1));
  EXPECT_EQ(failed_[0].port, 1U);
  EXPECT_EQ(failed_[0].group, kGroup);
  EXPECT_EQ(failed_[0].address, 0x1000U);
}

TEST_F(FaultsTest, SendDelayedStoresBeforeTheirMemberLeaves) {
  faults_.joined(1, kGroup);
  faults_.arm({.kind = GBA_INJECT_DELAY_RELEASE, .count = 2, .time = 50});
  store_to(1, 5);
  store_to(2, 5);
  faults_.left(1, kGroup);
  EXPECT_THAT(world_.take(), ElementsAre(store(1, kGroup, 5)));
  EXPECT_FALSE(world_.members.contains({1, kGroup}));
  EXPECT_THAT(run_at(50), ElementsAre(store(2, kGroup, 5)));
}

TEST_F(FaultsTest, ForgetADisconnectedPort) {
  faults_.arm({.kind = GBA_INJECT_DELAY_RELEASE, .time = 50});
  store_to(1, 5);
  faults_.forget(1);
  EXPECT_THAT(run_at(50), IsEmpty());
  store_to(1, 6);
  EXPECT_THAT(world_.take(), SizeIs(1));
}

TEST_F(FaultsTest, AddALatencyThatVariesAndKeepsTheOrder) {
  faults_.set_latency(2000, 500);
  fake_device::Time now = 0;
  std::set<fake_device::Time> delays;
  for (std::uint64_t word = 1; word <= 200; ++word) {
    faults_.set_time(now);
    store_to(1, word);
    const auto due = faults_.next_deadline();
    delays.insert(due - now);
    ASSERT_THAT(run_at(due), ElementsAre(store(1, kGroup, word)));
    now = due + 10'000;
  }
  EXPECT_GT(delays.size(), 100U);
  EXPECT_GT(*delays.begin(), 0U);
  EXPECT_LT(*delays.rbegin(), 5000U);
  faults_.set_latency(3000, 0);
  faults_.set_time(now);
  store_to(1, 1);
  store_to(1, 2);
  EXPECT_EQ(faults_.next_deadline(), now + 3000);
  EXPECT_THAT(run_at(now + 3000), ElementsAre(store(1, kGroup, 1), store(1, kGroup, 2)));
}

TEST_F(FaultsTest, StallAGroupForALimitedTime) {
  faults_.set_time(10);
  faults_.stall(kGroup, 60);
  EXPECT_TRUE(faults_.touches_arrivals());
  EXPECT_TRUE(faults_.stalled(kGroup));
  EXPECT_FALSE(faults_.stalled(kGroup + 1));
  EXPECT_EQ(faults_.next_deadline(), 60U);
  run_at(60);
  EXPECT_FALSE(faults_.stalled(kGroup));
  EXPECT_FALSE(faults_.touches_arrivals());
}

TEST_F(FaultsTest, DropArrivals) {
  faults_.arm({.kind = GBA_INJECT_DROP_ARRIVAL, .member = 11});
  EXPECT_TRUE(faults_.touches_arrivals());
  EXPECT_FALSE(faults_.drops_arrival(2, kGroup));
  EXPECT_TRUE(faults_.drops_arrival(1, kGroup));
  EXPECT_FALSE(faults_.touches_arrivals());
}

}  // namespace
