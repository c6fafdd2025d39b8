// SPDX-License-Identifier: Apache-2.0
// Failures of a device: links that go down, a breakdown; and resets, and sequences that do not start at 0.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::error_word;
using fake_device_test::Event;
using fake_device_test::kErrorVector;
using fake_device_test::raise;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::uint64_t device_status(Device& device, unsigned port) {
  return device.read(port, GBA_REG_DEV_STATUS);
}

// Uapi rule 17: sequence, code, ERROR.
TEST(FlagWord, HasTheLastReleaseAndTheReason) {
  constexpr std::uint64_t kLast = GBA_SEQUENCE_MAX;
  Device device;
  const unsigned group = device.barrier(1, kLast - 1);
  device.arrive(group, 0, kLast);
  EXPECT_EQ((device.effects.flags[{0, group}]), UINT64_C(0x007fffffffffffff)) << "no code, no ERROR";
  device.control(0, group, GBA_CONTROL_RESET);
  EXPECT_EQ((device.effects.flags[{0, group}]), UINT64_C(0x847fffffffffffff)) << "RESET is 4";
}

TEST(Link, DownPutsTheGroupsOfItsPortIntoError) {
  Device device;
  const unsigned group = device.barrier(3);
  const unsigned other = device.alloc(5);
  device.model.set_link(1, false);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_LINK_DOWN});
  EXPECT_EQ(device.error_member(group), 1U);
  EXPECT_EQ(device.error(other), unsigned{GBA_ERROR_NONE});
  for (unsigned port = 0; port < 3; ++port) {
    EXPECT_EQ((device.effects.flags[{port, group}]), error_word(GBA_ERROR_LINK_DOWN, 0));
    EXPECT_THAT(device.effects.events, Contains(raise(port, kErrorVector)));
  }
}

TEST(Link, IsReportedToItsPortOnly) {
  Device device;
  device.model.set_link(1, false);
  EXPECT_THAT(device.effects.take(), ElementsAre(raise(1, kErrorVector)));
  EXPECT_EQ(device_status(device, 1), GBA_DEV_STATUS_READY);
  EXPECT_EQ(device_status(device, 0), GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP);
  device.model.set_link(1, false);
  EXPECT_THAT(device.effects.take(), IsEmpty()) << "the link is down already";
  device.model.set_link(1, true);
  EXPECT_THAT(device.effects.take(), ElementsAre(raise(1, kErrorVector)));
  EXPECT_EQ(device_status(device, 1), GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP);
}

TEST(Link, DownLeavesAGroupThatIsNotEnabledAlone) {
  Device device;
  const unsigned group = device.barrier(2);
  device.control(0, group, 0);
  device.model.set_link(1, false);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
}

TEST(Link, DownLosesArrivalsUntilItIsUpAgain) {
  Device device;
  device.model.set_link(1, false);
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1);
  device.arrive(group, 1, 1);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_REJECTED), 0U);
  device.model.set_link(1, true);
  device.arrive(group, 1, 1);
  EXPECT_EQ(device.sequence(group), 1U);
}

TEST(Link, OfAPortWithoutAClientRaisesNothing) {
  Device device;
  device.model.disconnect(4);
  device.model.set_link(4, false);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  device.model.connect(4);
  EXPECT_EQ(device_status(device, 4) & GBA_DEV_STATUS_LINK_UP, 0U) << "the link's state does not depend on a client";
}

TEST(Breakdown, IsReportedToAllPortsAndEndsAllReleases) {
  Device device(2);
  const unsigned group = device.barrier(1);
  device.model.break_down();
  EXPECT_THAT(device.effects.take(),
              ElementsAre(raise(0, kErrorVector), raise(1, kErrorVector), raise(2, kErrorVector)));
  EXPECT_EQ(device_status(device, 0), GBA_DEV_STATUS_FATAL | GBA_DEV_STATUS_LINK_UP);
  device.arrive(group, 0, 1);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  EXPECT_EQ(device.sequence(group), 0U);
}

TEST(Breakdown, StopsTheTimers) {
  Device device;
  const unsigned group = device.barrier(2);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 100);
  device.arrive(group, 0, 1, false, 1000);
  device.model.break_down();
  device.model.expire(2000);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.model.next_deadline(), fake_device::kNever);
}

TEST(Breakdown, EndsWithAReset) {
  Device device(2);
  const unsigned group = device.barrier(1);
  device.model.break_down();
  device.write(device.model.privileged_port(), GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(device_status(device, 0), GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_RESET});
  const unsigned next = device.barrier(2);
  device.arrive(next, 0, 1);
  device.arrive(next, 1, 1);
  EXPECT_EQ(device.sequence(next), 1U);
}

TEST(Reset, OfAGroupByInjectionActsLikeOneByItsOwner) {
  Device device;
  const unsigned group = device.barrier(1);
  device.model.reset_group(group);
  device.model.reset_group(group + 1);  // no effect: not allocated
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_RESETS), 1U);
}

TEST(Sequences, StartAtTheRequestedSequence) {
  constexpr std::uint64_t kStart = 0xfffffffeULL;
  Device device;
  device.model.start_sequences_at(kStart);
  const unsigned group = device.alloc(0);
  EXPECT_EQ(device.sequence(group), kStart);
  device.configure(0, group, 1);
  device.control(0, group, Device::kRunning);
  device.join(0, group, 0);
  for (std::uint64_t round = kStart + 1; round <= kStart + 4; ++round) {
    device.arrive(group, 0, round);
    EXPECT_EQ((device.effects.flags[{0, group}]), round);
  }
}

TEST(Model, ReportsThePortOfEachMember) {
  Device device;
  const unsigned group = device.barrier(2);
  EXPECT_EQ(device.model.port_of(group, 1), 1);
  EXPECT_EQ(device.model.port_of(group, 2), fake_device::kNoPort);
  EXPECT_EQ(device.model.port_of(group, GBA_MAX_MEMBERS), fake_device::kNoPort);
  EXPECT_EQ(device.model.allocated_groups(), 1U);
}

}  // namespace
