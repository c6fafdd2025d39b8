// SPDX-License-Identifier: Apache-2.0
// Barriers among processes, and the errors that the remaining members get when a member or the device dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include "driver/tool/system.hpp"
#include "gba/gba.h"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/support/soak.hpp"

namespace driver_test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Matches;

constexpr std::uint64_t kLimitNs = 60'000'000'000;

class SleepyDeviceTest : public BarrierTest {
 protected:
  SleepyDeviceTest() : BarrierTest({"--idle-us", "0"}) {}
};

TEST_F(SleepyDeviceTest, IsWokenForEveryArrival) {
  start_members(2, {.rounds = 2000});
  expect_all_done();
  gba_device_counters counters{};
  ASSERT_EQ(gba_device_get_counters(owner_.get(), &counters), 0);
  EXPECT_EQ(counters.releases, 2000U);
  EXPECT_GT(counters.wakeups, 0U);
}

struct Size {
  std::uint32_t members;
  std::uint64_t rounds;
};

class BarrierSizes : public BarrierTest, public testing::WithParamInterface<Size> {};

TEST_P(BarrierSizes, NoMemberIsReleasedBeforeAllHaveArrived) {
  start_members(GetParam().members, {.rounds = GetParam().rounds});
  expect_all_done();
  gba_device_counters counters{};
  ASSERT_EQ(gba_device_get_counters(owner_.get(), &counters), 0);
  EXPECT_EQ(counters.releases, GetParam().rounds);
  EXPECT_EQ(counters.rejected, 0U);
  EXPECT_EQ(counters.errors, 0U);
}

INSTANTIATE_TEST_SUITE_P(Processes, BarrierSizes,
                         testing::Values(Size{2, 10000}, Size{4, 3000}, Size{8, 1000}, Size{15, 300}));

TEST_F(BarrierTest, SequencesContinuePastAWrapOfTheirLow32Bits) {
  start_members(3, {.rounds = 500}, (std::uint64_t{7} << 32) - 250);
  expect_all_done();
}

TEST_F(BarrierTest, KilledDeviceIsReportedToAllWaiters) {
  start_members(4, {.rounds = 1000, .hold_at = 20});
  ASSERT_TRUE(member(3).wait_for_output("holding", kLimit)) << member(3).output();
  kill_device();
  expect_failures(3, "failed wait " + std::to_string(ECONNABORTED) + " gba: ");
  for (std::size_t m = 0; m < 3; ++m) {
    // It may be lost while the member waits, or while it asks the device.
    EXPECT_THAT(member(m).output(), AnyOf(HasSubstr("the device vfio-user:" + path() + " is lost"),
                                          HasSubstr("lost the device vfio-user:" + path() + " in ")));
  }
}

TEST_F(BarrierTest, DeviceKilledAtAnyMomentHangsNoMember) {
  const int kills = test_support::repeats(20, 500);
  for (int i = 0; i < kills; ++i) {
    if (i > 0) {
      start();
    }
    const std::size_t before = member_count();
    start_members(3, {.rounds = UINT64_C(1) << 40});
    for (std::size_t m = before; m < member_count(); ++m) {
      ASSERT_TRUE(member(m).wait_for_output("joined", kLimit));
    }
    ::usleep(static_cast<useconds_t>(500 * (i % 20)));
    kill_device();
    for (std::size_t m = before; m < member_count(); ++m) {
      const auto exit = member(m).wait(kLimit);
      ASSERT_TRUE(exit) << member(m).output();
      EXPECT_THAT(member(m).output(), HasSubstr("failed wait " + std::to_string(ECONNABORTED)));
    }
    owner_.reset();
  }
}

TEST_F(BarrierTest, KilledMemberIsReportedToTheOthers) {
  start_members(4, {.rounds = 1000, .hold_at = 20});
  ASSERT_TRUE(member(3).wait_for_output("holding", kLimit)) << member(3).output();
  member(3).signal(SIGKILL);
  expect_failures(3, "failed wait " + std::to_string(EPIPE) +
                         " gba: group 0: barrier 20 will not be released: a member left the group, or its"
                         " process ended (member 3); the last one released is 19");
}

TEST_F(BarrierTest, TimeoutNamesTheMissingMember) {
  const auto names_it = HasSubstr("barrier 10 was not released in time: member 4 did not arrive");
  // The first member to end leaves the group, which gives the others an error release.
  const auto left = HasSubstr("failed wait " + std::to_string(EPIPE));
  const auto outputs = test_support::with_timeouts(
      [&](int seconds) {
        const std::size_t before = member_count();
        start_members(5, {.rounds = 1000, .wait_ms = static_cast<std::uint64_t>(seconds) * 1000, .hold_at = 10});
        EXPECT_TRUE(member(before + 4).wait_for_output("holding", kLimit)) << member(before + 4).output();
        std::vector<std::string> ends;
        for (std::size_t m = before; m < before + 4; ++m) {
          EXPECT_TRUE(member(m).wait(kLimit));
          ends.push_back(member(m).output());
        }
        return ends;
      },
      Matches(AllOf(Contains(names_it), Each(AnyOf(names_it, left)))));
  EXPECT_THAT(outputs, AllOf(Contains(names_it), Each(AnyOf(names_it, left))));
}

TEST_F(BarrierTest, MissingNamesTheMembersThatHaveNotArrived) {
  const auto device = open();
  const auto handle = alloc(device.get(), 130);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0);
  const auto group = join(device.get(), handle, 64);
  gba_group_arrive(group.get(), 1);
  EXPECT_EQ(gba_group_sleep(group.get(), 1, 1'000'000), -EAGAIN);
  std::uint64_t mask[GBA_GROUP_MASK_WORDS] = {};
  ASSERT_EQ(gba_group_missing(group.get(), mask), 0);
  EXPECT_EQ(mask[0], UINT64_MAX);
  EXPECT_EQ(mask[1], UINT64_MAX - 1);
  EXPECT_EQ(mask[2], 3U);
}

long voluntary_switches(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("voluntary_ctxt_switches:")) {
      return std::stol(line.substr(24));
    }
  }
  return -1;
}

TEST_F(BarrierTest, WaiterSleeps) {
  start_members(2, {.rounds = 10, .hold_at = 5});
  ASSERT_TRUE(member(1).wait_for_output("holding", kLimit));
  ::usleep(1'000'000);  // the waiter's naps are at their longest by then
  const auto start = std::chrono::steady_clock::now();
  const long before = voluntary_switches(member(0).pid());
  ::usleep(2'000'000);
  const long naps = voluntary_switches(member(0).pid()) - before;
  EXPECT_LE(naps, (std::chrono::steady_clock::now() - start) / std::chrono::milliseconds(50));
}

TEST_F(BarrierTest, SleeperIsInterruptedEachTimeTheDeviceIsReopened) {
  for (int opening = 0; opening < 3; ++opening) {
    const auto device = open();
    const auto handle = alloc(device.get(), 2);
    ASSERT_EQ(gba_group_enable(device.get(), &handle), 0);
    const auto before = tool::open_eventfds();
    const auto group = join(device.get(), handle, 0);
    const int event = tool::new_eventfd(before);
    EXPECT_EQ(gba_group_sleep(group.get(), 1, 0), -EAGAIN);
    add_member(handle, 1, {.rounds = 1});
    EXPECT_TRUE(tool::comes(event, kLimitNs)) << "opening " << opening;
    EXPECT_EQ(gba_group_test(group.get(), 1), 0);
  }
}

TEST_F(BarrierTest, DeviceCanBeReopenedAfterItsLoss) {
  auto lost = open();
  const auto handle = alloc(lost.get(), 1);
  auto group = join(lost.get(), handle, 0);
  kill_device();
  EXPECT_EQ(gba_group_wait(group.get(), 1, GBA_WAIT_FOREVER), -ECONNABORTED);
  gba_device_info info{};
  EXPECT_EQ(gba_device_get_info(lost.get(), &info), -ECONNABORTED);
  EXPECT_STREQ(info.backend, "vfio-user");
  EXPECT_EQ(gba_group_leave(group.release()), -ECONNABORTED);
  start();
  const auto fresh = open();
  const auto next = alloc(fresh.get(), 1);
  EXPECT_EQ(gba_group_enable(fresh.get(), &next), 0) << gba_error_text();
  const auto member = join(fresh.get(), next, 0);
  gba_group_arrive(member.get(), 1);
  EXPECT_EQ(gba_group_wait(member.get(), 1, GBA_WAIT_FOREVER), 0) << gba_error_text();
}

TEST_F(BarrierTest, ReleaseOutlivesTheDevice) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0);
  const auto group = join(device.get(), handle, 0);
  gba_group_arrive(group.get(), 1);
  ASSERT_EQ(gba_group_wait(group.get(), 1, GBA_WAIT_FOREVER), 0);
  kill_device();
  EXPECT_EQ(gba_group_test(group.get(), 1), 0);
  gba_group_arrive(group.get(), 2);
  EXPECT_EQ(gba_group_wait(group.get(), 2, GBA_WAIT_FOREVER), -ECONNABORTED);
  EXPECT_EQ(gba_group_test(group.get(), 1), 0);
}

TEST_F(BarrierTest, StoppedDeviceIsLostWithinTheReplyTimeout) {
  const auto device = open();
  process().signal(SIGSTOP);
  gba_device_counters counters{};
  EXPECT_EQ(gba_device_get_counters(device.get(), &counters), -EHOSTDOWN);
  EXPECT_THAT(gba_error_text(), HasSubstr("in REGION_READ: no answer in time"));
  process().signal(SIGCONT);
}

class FlagsTest : public BarrierTest, public testing::WithParamInterface<const char*> {
 protected:
  FlagsTest() { ::setenv("GBA_FLAGS", GetParam(), 1); }
  ~FlagsTest() override { ::unsetenv("GBA_FLAGS"); }
};

TEST_P(FlagsTest, AreInTheMemoryThatWasAskedFor) {
  start_members(3, {.rounds = 300});
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(owner_.get(), &info), 0);
  EXPECT_EQ(info.flags, std::string(GetParam()) == "bar" ? GBA_FLAGS_BAR : GBA_FLAGS_DMA);
  expect_all_done();
}

INSTANTIATE_TEST_SUITE_P(Memory, FlagsTest, testing::Values("auto", "dma", "huge", "bar"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST_F(BarrierTest, InvalidOptionsAreRefused) {
  gba_device* device = nullptr;
  gba_open_options options{};
  EXPECT_EQ(gba_open_with(path().c_str(), &options, &device), -EINVAL) << "no size";
  options.size = sizeof options;
  options.flags = GBA_FLAGS_BAR + 1;
  EXPECT_EQ(gba_open_with(path().c_str(), &options, &device), -EINVAL);
  options.flags = GBA_FLAGS_BAR;
  ASSERT_EQ(gba_open_with(path().c_str(), &options, &device), 0) << gba_error_text();
  const DevicePointer open_device(device);
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(device, &info), 0);
  EXPECT_EQ(info.flags, GBA_FLAGS_BAR);
  ::setenv("GBA_FLAGS", "elsewhere", 1);
  EXPECT_EQ(gba_open(path().c_str(), &device), -EINVAL);
  EXPECT_THAT(gba_error_text(), HasSubstr("not auto, dma, huge or bar"));
  ::unsetenv("GBA_FLAGS");
}

}  // namespace
}  // namespace driver_test
