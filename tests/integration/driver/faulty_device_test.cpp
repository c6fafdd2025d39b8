// SPDX-License-Identifier: Apache-2.0
// Barriers over a device that loses, delays, repeats and forges arrivals and releases: every barrier completes.
#include "gba/gba.h"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/support/soak.hpp"

namespace driver_test {
namespace {

struct Faulty {
  const char* name;
  std::vector<std::string> faults;
  std::uint64_t stale = 0;  // the fewest arrivals that are repeated after their release
};

class FaultyDeviceTest : public BarrierTest, public testing::WithParamInterface<Faulty> {
 protected:
  FaultyDeviceTest() : BarrierTest(options()) {}

 private:
  static std::vector<std::string> options() {
    std::vector<std::string> options;
    for (const auto& fault : GetParam().faults) {
      options.insert(options.end(), {"--fault", fault});
    }
    return options;
  }
};

TEST_P(FaultyDeviceTest, EndsEveryBarrier) {
  constexpr std::uint32_t kMembers = 3;
  const auto rounds = static_cast<std::uint64_t>(test_support::repeats(200, 5000));
  start_members(kMembers, {.rounds = rounds});
  expect_all_done();
  gba_device_counters counters{};
  ASSERT_EQ(gba_device_get_counters(owner_.get(), &counters), 0);
  EXPECT_EQ(counters.releases, rounds);
  EXPECT_GE(counters.stale, GetParam().stale) << "the faults did not strike";
}

// The sequence passes 2^32 in the middle of the run.
TEST_P(FaultyDeviceTest, EndsEveryBarrierPast32Bits) {
  start_members(2, {.rounds = 60}, 0xffffffe0U);
  expect_all_done();
}

INSTANTIATE_TEST_SUITE_P(
    Faults, FaultyDeviceTest,
    testing::Values(
        Faulty{"ARepeatedlyDroppedRelease", {"drop-release:member=1,count=3,after=10"}, 3},
        Faulty{"DroppedReleasesOfAll", {"drop-release:count=9,after=5"}, 3},
        Faulty{"DelayedReleases", {"delay-release:count=10,time=20ms,after=7"}},
        Faulty{"DuplicatedReleases", {"duplicate-release:count=always"}},
        Faulty{"DroppedArrivals", {"drop-arrival:count=5,after=20"}},
        Faulty{"NoInterrupts", {"drop-interrupt:count=always"}},
        Faulty{"Stalls", {"stall-group:group=0,time=100ms,at=20ms", "stall-group:group=0,time=50ms,at=200ms"}},
        Faulty{"StaleArrivals",
               {"forge-arrival:group=0,member=1,value=-1,at=50ms", "forge-arrival:group=0,member=0,value=0,at=60ms"}},
        Faulty{"AFabricsLatency", {"latency:time=20us,sigma=5us"}},
        Faulty{"SlowCommands", {"slow-command:time=20ms,count=always"}}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Uapi rule 4: the outcome of a command is read when the device is not BUSY any more.
class SlowCommands : public DeviceTest {
 protected:
  explicit SlowCommands(const std::string& time = "100ms") : DeviceTest({"--fault", "slow-command:time=" + time}) {}
};

TEST_F(SlowCommands, AreWaitedFor) {
  const auto device = open();
  const auto start = std::chrono::steady_clock::now();
  const auto handle = alloc(device.get(), 1);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(95));
  EXPECT_NE(handle.key, 0U) << "of this command";
  const auto member = join(device.get(), handle, 0);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  gba_group_arrive(member.get(), 1);
  EXPECT_EQ(gba_group_wait(member.get(), 1, 20'000'000'000), 0) << gba_error_text();
}

class CommandsWithoutEnd : public SlowCommands {
 protected:
  CommandsWithoutEnd() : SlowCommands("1000s") {}
};

TEST_F(CommandsWithoutEnd, MeanThatTheDeviceIsLost) {
  const auto device = open();
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device.get(), 1, 0, &handle), -EHOSTDOWN) << gba_error_text();
}

}  // namespace
}  // namespace driver_test
