// SPDX-License-Identifier: Apache-2.0
// Barriers through the real process: arrivals in mapped doorbells, releases in flags in client memory.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "tests/integration/fake_device/device_fixture.hpp"

namespace {

using FakeDevice = raw::DeviceTest;
using raw::Port;
using test_support::Seconds;

TEST_F(FakeDevice, ReleasesASingleMemberAgainAndAgain) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  for (std::uint64_t k = 1; k <= 20000; ++k) {
    port.arrive(group, 0, k);
    ASSERT_EQ(port.wait_flag(group, k - 1), k);
  }
  EXPECT_EQ(port.read(GBA_REG_COUNTER_RELEASES), 20000U);
  EXPECT_EQ(port.read(GBA_REG_FAULT), 0U);
}

TEST_F(FakeDevice, ReleasesNoMemberBeforeAllHaveArrived) {
  Port first(path());
  Port second(path());
  const auto group = first.make_group(2);
  first.join(group, 0);
  second.join(group, 1);
  for (std::uint64_t k = 1; k <= 200; ++k) {
    Port& early = k % 2 == 0 ? first : second;
    Port& late = k % 2 == 0 ? second : first;
    early.arrive(group, k % 2 == 0 ? 0 : 1, k);
    while (early.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_ARRIVAL_COUNT, 4) != 1) {
    }
    ASSERT_EQ(early.flag(group), k - 1);
    late.arrive(group, k % 2 == 0 ? 1 : 0, k);
    ASSERT_EQ(first.wait_flag(group, k - 1), k);
    ASSERT_EQ(second.wait_flag(group, k - 1), k);
  }
}

TEST_F(FakeDevice, ReleasesThroughBar4WithoutAnAddress) {
  Port port(path());
  const auto group = port.make_group(1);
  ASSERT_EQ(port.command(GBA_CMD_JOIN, group.id, 0, group.key), unsigned{GBA_CMD_OK});
  port.arrive(group, 0, 1);
  auto& flag = port.bar_flags().word(std::size_t{GBA_FLAG_STRIDE} * group.id);
  while (flag.load() == 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(flag.load(), 1U);
}

TEST_F(FakeDevice, RaisesTheGroupsVectorForAnArrivalWithNotify) {
  Port port(path());
  const auto eventfd = raw::make_eventfd();
  const std::array fds{eventfd.get()};
  const auto group = port.make_group(1);
  ASSERT_EQ(port.arm(GBA_IRQ_MSIX, group.id, fds), 0);
  port.join(group, 0);
  port.arrive(group, 0, 1, /*notify=*/true);
  EXPECT_EQ(raw::wait_event(eventfd.get()), 1U);
  EXPECT_EQ(port.flag(group), 1U) << "the interrupt came before the flag";
  port.arrive(group, 0, 1, /*notify=*/true);  // the repeat of a released arrival is answered at once
  EXPECT_EQ(raw::wait_event(eventfd.get()), 1U);
}

TEST_F(FakeDevice, InterruptsTheMemberThatAskedAndNotTheOneThatArrivedLast) {
  Port first(path());
  Port second(path());
  const auto group = first.make_group(2);
  first.join(group, 0);
  second.join(group, 1);
  const auto first_event = raw::make_eventfd();
  const auto second_event = raw::make_eventfd();
  ASSERT_EQ(first.arm(GBA_IRQ_MSIX, group.id, std::array{first_event.get()}), 0);
  ASSERT_EQ(second.arm(GBA_IRQ_MSIX, group.id, std::array{second_event.get()}), 0);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const bool first_asks = round % 2 == 0;
    (first_asks ? first : second).arrive(group, first_asks ? 0 : 1, round, /*notify=*/true);
    (first_asks ? second : first).arrive(group, first_asks ? 1 : 0, round);
    EXPECT_EQ(raw::wait_event((first_asks ? first_event : second_event).get()), 1U) << "round " << round;
    EXPECT_EQ(raw::wait_event((first_asks ? second_event : first_event).get(), 0), 0U) << "round " << round;
  }
}

TEST_F(FakeDevice, WakesForEveryArrivalAlthoughItSleepsInBetween) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  for (std::uint64_t k = 1; k <= 100; ++k) {
    // WAKEUP alone is not enough: the device scans once more before it sleeps.
    while (port.doorbells().half(GBA_DOORBELL_WAKEUP).load() == 0 || !asleep()) {
      std::this_thread::yield();
    }
    port.arrive(group, 0, k);
    ASSERT_EQ(port.wait_flag(group, k - 1), k);
  }
  EXPECT_GE(port.read(GBA_REG_COUNTER_WAKEUPS), 100U);
}

TEST_F(FakeDevice, StaysAsleepWhileNothingHappens) {
  std::vector<std::unique_ptr<Port>> ports;
  ports.push_back(std::make_unique<Port>(path()));
  const auto group = ports.front()->make_group(20);
  ports.front()->join(group, 0);
  for (unsigned member = 1; member < 20; ++member) {
    ports.push_back(std::make_unique<Port>(path()));
    ports.back()->join(group, member);
  }
  ports.front()->arrive(group, 0, 1);
  while (ports.front()->doorbells().half(GBA_DOORBELL_WAKEUP).load() == 0) {
    std::this_thread::yield();
  }
  const long before = context_switches();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LE(context_switches() - before, 20);
}

TEST_F(FakeDevice, AnswersTheOthersWhenAMemberIsKilledInABarrier) {
  Port survivor(path());
  const auto eventfd = raw::make_eventfd();
  const std::array fds{eventfd.get()};
  const auto group = survivor.make_group(2);
  ASSERT_EQ(survivor.arm(GBA_IRQ_MSIX, group.id, fds), 0);
  survivor.join(group, 0);
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Port victim(path());
    victim.join(group, 1);
    for (std::uint64_t k = 1; k <= 10; ++k) {
      victim.arrive(group, 1, k);
      victim.wait_flag(group, k - 1);
    }
    [[maybe_unused]] const auto told = ::write(ready[1], "", 1);
    ::pause();
    ::_exit(0);
  }
  for (std::uint64_t k = 1; k <= 10; ++k) {
    survivor.arrive(group, 0, k);
    ASSERT_EQ(survivor.wait_flag(group, k - 1), k);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  survivor.arrive(group, 0, 11, /*notify=*/true);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);

  EXPECT_EQ(raw::wait_event(eventfd.get()), 1U);
  const auto word = survivor.flag(group);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_ERROR, word), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, word), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word), 10U);
  const auto error = survivor.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_ERROR_CODE);
  EXPECT_EQ(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, error), 1U);
}

TEST_F(FakeDevice, ReportsALinkDownToAllMembersWhenItIsTerminated) {
  Port port(path());
  const auto group = port.make_group(2);
  port.join(group, 0);
  port.arrive(group, 0, 1);
  device().signal(SIGTERM);
  const auto exit = device().wait(Seconds(20));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(exit->clean()) << device().output();
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, port.flag(group)), unsigned{GBA_ERROR_LINK_DOWN});
  EXPECT_NE(::access(path().c_str(), F_OK), 0) << "the socket was left behind";
}

TEST_F(FakeDevice, StoresByMessagesToMemoryThatItsClientCanTakeAway) {
  Port good(path());
  Port loose(path(), raw::kVersion, {.sealed = false});
  const auto group = good.make_group(2);
  good.join(group, 0);
  loose.join(group, 1);
  ASSERT_EQ(::ftruncate(loose.flag_fd(), 0), 0);
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    good.arrive(group, 0, sequence);
    loose.arrive(group, 1, sequence);
    const auto store = loose.client().receive();
    ASSERT_TRUE(store);
    EXPECT_EQ(store->header.command, VFIO_USER_DMA_WRITE);
    EXPECT_EQ(store->as<vfio_user_dma_access>().address, raw::kFlagIova + std::uint64_t{GBA_FLAG_STRIDE} * group.id);
    EXPECT_EQ(store->as<std::uint64_t>(sizeof(vfio_user_dma_access)), sequence);
    ASSERT_TRUE(raw::answer(loose.client(), *store));
    EXPECT_EQ(good.wait_flag(group, sequence - 1), sequence);
  }
  EXPECT_EQ(good.read(GBA_REG_COUNTER_DMA_FAULTS), 0U);
}

// A store that was sent as a message may still be under way.
TEST_F(FakeDevice, StoresByMessagesToMemoryThatIsSealedLater) {
  Port port(path(), raw::kVersion, {.sealed = false});
  const auto group = port.make_group(1);
  port.join(group, 0);
  for (std::uint64_t sequence = 1; sequence <= 2; ++sequence) {
    port.arrive(group, 0, sequence);
    const auto store = port.client().receive();
    ASSERT_TRUE(store);
    EXPECT_EQ(store->as<std::uint64_t>(sizeof(vfio_user_dma_access)), sequence);
    ASSERT_TRUE(raw::answer(port.client(), *store));
    raw::seal(port.flag_fd());
  }
  EXPECT_EQ(port.flag(group), 0U);
}

class TrustingFakeDevice : public raw::DeviceTest {
 protected:
  TrustingFakeDevice() : raw::DeviceTest({"--trust-memory"}) {}
};

TEST_F(TrustingFakeDevice, DropsOnlyTheClientThatTruncatesItsFlagMemory) {
  Port good(path());
  Port bad(path(), raw::kVersion, {.sealed = false});
  const auto group = good.make_group(2);
  good.join(group, 0);
  bad.join(group, 1);
  ASSERT_EQ(::ftruncate(bad.flag_fd(), 0), 0);
  good.arrive(group, 0, 1);
  bad.arrive(group, 1, 1);
  const auto word = good.wait_flag(group, 0);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, word), 1U);
  EXPECT_EQ(bad.client().receive(), std::nullopt);
  EXPECT_EQ(good.read(GBA_REG_COUNTER_DMA_FAULTS), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, good.flag(group)), unsigned{GBA_ERROR_DMA_FAULT});
}

TEST_F(FakeDevice, ReportsAnUnmappedFlagAsADmaFault) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  port.arrive(group, 0, 1);
  ASSERT_EQ(port.wait_flag(group, 0), 1U);
  ASSERT_EQ(port.unmap_dma(raw::kFlagIova, 0x1000), 0);
  port.arrive(group, 0, 2);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(port.read(GBA_REG_FAULT_ADDR), raw::kFlagIova + std::uint64_t{GBA_FLAG_STRIDE} * group.id);
  EXPECT_EQ(port.read(GBA_GROUP_BASE(group.id) + GBA_GROUP_ERROR_CODE), unsigned{GBA_ERROR_DMA_FAULT});
}

TEST_F(FakeDevice, StoresNothingWhileBusMasterIsClear) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  ASSERT_EQ(port.write(0x04, 0x2, 2, GBA_REGION_CONFIG), 0);
  port.arrive(group, 0, 1);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(port.flag(group), 0U);
}

TEST_F(FakeDevice, ReadsAllOnesAndDropsDoorbellsWhileMemoryDecodingIsOff) {
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  ASSERT_EQ(port.write(0x04, 0x4, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(port.read(GBA_REG_MAGIC, 4), 0xffffffffU);
  port.arrive(group, 0, 1);
  ASSERT_EQ(port.write(0x04, 0x6, 2, GBA_REGION_CONFIG), 0);
  EXPECT_EQ(port.read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  EXPECT_EQ(port.read(GBA_REG_COUNTER_ARRIVALS), 0U);
  port.arrive(group, 0, 1);
  EXPECT_EQ(port.wait_flag(group, 0), 1U);
}

TEST_F(FakeDevice, RefusesAnArrivalWithoutMembershipAsAFault) {
  Port port(path());
  port.arrive({.id = 5, .key = 0}, 3, 1);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
  EXPECT_EQ(port.read(GBA_REG_COUNTER_REJECTED), 1U);
}

TEST_F(FakeDevice, ResetOfAPortIsALeave) {
  Port first(path());
  Port second(path());
  const auto group = first.make_group(2);
  first.join(group, 0);
  second.join(group, 1);
  EXPECT_EQ(second.client().call(VFIO_USER_DEVICE_RESET, {}).error(), 0);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, first.wait_flag(group, 0)), unsigned{GBA_ERROR_LEAVE});
}

class SmallFakeDevice : public raw::DeviceTest {
 protected:
  SmallFakeDevice() : raw::DeviceTest({"--ports", "2"}) {}
};

TEST_F(SmallFakeDevice, RefusesAClientWithoutAFreePortAndGivesAFreedOneToTheNext) {
  Port first(path());
  auto second = std::make_unique<Port>(path());
  EXPECT_EQ(second->read(GBA_REG_PORT_ID, 4), 1U);
  raw::Client third(path());
  EXPECT_EQ(third.version().error(), EBUSY);
  EXPECT_EQ(third.receive(), std::nullopt);
  second.reset();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int error = EBUSY;
  while (error == EBUSY && std::chrono::steady_clock::now() < end) {
    error = raw::Client(path()).version().error();
  }
  EXPECT_EQ(error, 0);
}

}  // namespace
