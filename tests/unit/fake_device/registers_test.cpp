// SPDX-License-Identifier: Apache-2.0
// The register map: which registers can be read and written, in which size and by which port. Uapi rules 1, 3 and 6.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::kErrorVector;
using fake_device_test::raise;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(DeviceRegisters, DescribeTheDevice) {
  Device device;
  EXPECT_EQ(device.read(0, GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  EXPECT_EQ(device.read(0, GBA_REG_VERSION, 4), 0x10002U);
  const auto caps = device.read(0, GBA_REG_CAPS);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_GROUPS, caps), 32U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_MEMBERS, caps), 708U);
  EXPECT_NE(caps & GBA_CAPS_WAKEUP, 0U);
  EXPECT_EQ(device.read(0, GBA_REG_DEV_STATUS), GBA_DEV_STATUS_READY | GBA_DEV_STATUS_LINK_UP);
  EXPECT_EQ(device.read(5, GBA_REG_PORT_ID, 4), 5U);
}

TEST(DeviceRegisters, ReadOnlyOnesDropWritesSilently) {
  Device device;
  const unsigned group = device.alloc(0);
  device.write(0, GBA_REG_MAGIC, 1, 4);
  device.write(0, GBA_REG_COUNTER_ARRIVALS, 7);
  device.write(0, GBA_REG_CMD_RESULT, 7);
  device.group_write(0, group, GBA_GROUP_STATUS, 15);
  device.group_write(0, group, GBA_GROUP_ID, 9, 4);
  EXPECT_EQ(device.read(0, GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ARRIVALS), 0U);
  EXPECT_EQ(device.status(group), 0U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ID, 4), group);
  EXPECT_EQ(device.fault(0), 0U);
}

TEST(DeviceRegisters, WriteOnlyOnesReadZero) {
  Device device;
  const unsigned group = device.barrier(1);
  device.group_write(0, group, GBA_GROUP_RELEASE_ADDR, 0x1000);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_RELEASE_ADDR), 0U);
  EXPECT_EQ(device.read(0, GBA_REG_CMD), 0U);
  EXPECT_EQ(device.read(0, GBA_REG_KICK), 0U);
  EXPECT_EQ(device.fault(0), 0U);
}

struct BadAccess {
  std::uint64_t offset;
  unsigned size;
};
class BadAccesses : public ::testing::TestWithParam<BadAccess> {};

TEST_P(BadAccesses, ReadZeroDropWritesAndRaiseAFault) {
  Device device;
  const auto [offset, size] = GetParam();
  EXPECT_EQ(device.read(0, offset, size), 0U);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
  EXPECT_EQ(device.read(0, GBA_REG_FAULT_ADDR), offset);
  device.write(0, GBA_REG_FAULT, ~std::uint64_t{0});
  device.write(0, offset, ~std::uint64_t{0}, size);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
}

INSTANTIATE_TEST_SUITE_P(
    SizesAlignmentsAndHoles, BadAccesses,
    ::testing::Values(BadAccess{GBA_REG_MAGIC, 8}, BadAccess{GBA_REG_MAGIC, 2}, BadAccess{GBA_REG_CAPS, 4},
                      BadAccess{GBA_REG_CAPS + 4, 4}, BadAccess{GBA_REG_CAPS + 1, 8}, BadAccess{GBA_REG_PORT_ID, 1},
                      BadAccess{0x24, 4}, BadAccess{0x70, 8}, BadAccess{GBA_REG_COUNTERS_END, 8},
                      BadAccess{GBA_GROUP_BASE(0) + 0x0c, 4}, BadAccess{GBA_GROUP_BASE(0) + GBA_GROUP_CONTROL, 4},
                      BadAccess{GBA_GROUP_BASE(0) + 0x70, 8},
                      BadAccess{GBA_GROUP_BASE(3) + GBA_GROUP_RELEASE_ADDR + std::uint64_t{8} * GBA_MAX_MEMBERS, 8},
                      BadAccess{GBA_GROUP_BASE(GBA_MAX_GROUPS), 4}, BadAccess{GBA_BAR0_SIZE - 8, 8},
                      BadAccess{GBA_REG_CAPS, 16}));

TEST(GroupRegisters, OfAFreeGroupReadZeroAndCannotBeWritten) {
  Device device;
  EXPECT_EQ(device.group_read(7, GBA_GROUP_ID, 4), 7U);
  EXPECT_EQ(device.group_read(7, GBA_GROUP_CONTROL), 0U);
  device.group_write(0, 7, GBA_GROUP_MEMBER_COUNT, 2, 4);
  EXPECT_EQ(device.group_read(7, GBA_GROUP_MEMBER_COUNT, 4), 0U);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
}

TEST(GroupRegisters, HoldTheOwnersValues) {
  Device device;
  const unsigned group = device.alloc(0);
  device.group_write(0, group, GBA_GROUP_MEMBER_COUNT, 708, 4);
  device.group_write(0, group, GBA_GROUP_MEMBER_MASK + 8 * 11, 0xf);
  device.group_write(0, group, GBA_GROUP_SEQUENCE, GBA_SEQUENCE_MAX);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 123456789);
  device.control(0, group, GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_COUNT, 4), 708U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_MASK + 8 * 11), 0xfU);
  EXPECT_EQ(device.sequence(group), GBA_SEQUENCE_MAX);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_TIMEOUT), 123456789U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_CONTROL), GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  EXPECT_EQ(device.fault(0), 0U);
}

TEST(GroupRegisters, AreReadByAllAndWrittenByTheOwnerOnly) {
  Device device;
  const unsigned group = device.alloc(2);
  device.group_write(2, group, GBA_GROUP_MEMBER_COUNT, 3, 4);
  const auto base = GBA_GROUP_BASE(group);
  EXPECT_EQ(device.read(6, base + GBA_GROUP_MEMBER_COUNT, 4), 3U);
  for (const auto offset : {GBA_GROUP_MEMBER_MASK, GBA_GROUP_CONTROL, GBA_GROUP_SEQUENCE, GBA_GROUP_TIMEOUT}) {
    device.write(6, base + offset, 1);
    EXPECT_EQ(device.read(2, base + offset), 0U);
    EXPECT_EQ(device.fault(6), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
    EXPECT_EQ(device.read(6, GBA_REG_FAULT_ADDR), base + offset);
    device.write(6, GBA_REG_FAULT, ~std::uint64_t{0});
  }
  EXPECT_EQ(device.fault(2), 0U);
}

struct BadValue {
  std::uint64_t offset;
  unsigned size;
  std::uint64_t value;
};
class BadValues : public ::testing::TestWithParam<BadValue> {};

TEST_P(BadValues, AreDroppedAndRaiseAFault) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 3);
  EXPECT_EQ(device.join(1, group, 2), unsigned{GBA_CMD_OK});
  const auto [offset, size, value] = GetParam();
  const auto before = device.group_read(group, offset, size);
  device.group_write(0, group, offset, value, size);
  EXPECT_EQ(device.group_read(group, offset, size), before);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
  EXPECT_EQ(GBA_FIELD_GET(GBA_FAULT_INFO_GROUP, device.read(0, GBA_REG_FAULT_INFO)), group);
}

INSTANTIATE_TEST_SUITE_P(OwnersRegisters, BadValues,
                         ::testing::Values(BadValue{GBA_GROUP_MEMBER_COUNT, 4, 0},
                                           BadValue{GBA_GROUP_MEMBER_COUNT, 4, 709},
                                           BadValue{GBA_GROUP_MEMBER_COUNT, 4, 0xffffffff},
                                           BadValue{GBA_GROUP_MEMBER_MASK, 8, 0x3},  // drops the joined member 2
                                           BadValue{GBA_GROUP_MEMBER_MASK + 8 * 11, 8, 0x10},
                                           BadValue{GBA_GROUP_SEQUENCE, 8, GBA_SEQUENCE_MAX + 1}));

TEST(GroupRegisters, AreFixedWhileTheGroupIsEnabled) {
  Device device;
  const unsigned group = device.barrier(2, 5);
  device.group_write(0, group, GBA_GROUP_MEMBER_COUNT, 1, 4);
  device.group_write(0, group, GBA_GROUP_MEMBER_MASK, 7);
  device.group_write(0, group, GBA_GROUP_SEQUENCE, 9);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_COUNT, 4), 2U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_MASK), 3U);
  EXPECT_EQ(device.sequence(group), 5U);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
}

TEST(GroupRegisters, ReportTheAgeOfTheOpenRound) {
  Device device;
  const unsigned group = device.barrier(2);
  const auto age = [&](fake_device::Time now) {
    return device.model.read(1, GBA_GROUP_BASE(group) + GBA_GROUP_ROUND_AGE, 8, now);
  };
  EXPECT_EQ(age(500), 0U);
  device.arrive(group, 1, 1, false, 1000);
  EXPECT_EQ(age(1000), 1U) << "not 0 while a round is open";
  EXPECT_EQ(age(1700), 700U);
  device.arrive(group, 0, 1, false, 1800);
  EXPECT_EQ(age(2000), 0U);
}

TEST(GroupRegisters, ReportThePortOfEachMember) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 708);
  device.join(3, group, 0);
  device.join(5, group, 707);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_PORT), 0xffffffffffff0003U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_PORT + 8 * (GBA_MEMBER_PORT_WORDS - 1)), 0x0005ffffffffffffU);
  device.command(3, GBA_CMD_LEAVE, group);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_PORT), UINT64_MAX);
  device.command(0, GBA_CMD_FREE, group);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_PORT), UINT64_MAX) << "0 would name port 0 as a member";
}

TEST(ReleaseAddress, IsWrittenByTheJoinedMemberOnly) {
  Device device;
  const unsigned group = device.barrier(2);
  device.group_write(1, group, GBA_GROUP_RELEASE_ADDR + 8, 0x2000);
  device.group_write(1, group, GBA_GROUP_RELEASE_ADDR, 0x3000);  // of another member
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  device.arrive(group, 0, 1);
  device.arrive(group, 1, 1);
  EXPECT_EQ((device.effects.addresses[{0, group}]), GBA_RELEASE_ADDR_BAR_FLAGS);
  EXPECT_EQ((device.effects.addresses[{1, group}]), 0x2000U);
}

TEST(ReleaseAddress, MustBeAligned) {
  Device device;
  const unsigned group = device.barrier(1);
  device.group_write(0, group, GBA_GROUP_RELEASE_ADDR, 0x2004);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
}

TEST(Faults, LatchTheFirstAddressAndClearByWritingOnes) {
  Device device;
  device.read(3, 0x24, 4);
  device.command(3, GBA_CMD_ALLOC);
  device.command(3, GBA_CMD_JOIN, 0, 0, 1);  // wrong key
  EXPECT_EQ(device.fault(3), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS) | GBA_FAULT_BIT(GBA_FAULT_KEY));
  EXPECT_EQ(device.read(3, GBA_REG_FAULT_ADDR), 0x24U);
  device.write(3, GBA_REG_FAULT, GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
  EXPECT_EQ(device.fault(3), GBA_FAULT_BIT(GBA_FAULT_KEY));
  EXPECT_EQ(device.read(3, GBA_REG_FAULT_ADDR), 0x24U) << "the first stays latched until all are clear";
  device.write(3, GBA_REG_FAULT, GBA_FAULT_BIT(GBA_FAULT_KEY));
  EXPECT_EQ(device.read(3, GBA_REG_FAULT_ADDR), 0U);
  EXPECT_EQ(device.fault(2), 0U) << "faults belong to a port";
}

TEST(Faults, RaiseTheErrorVectorOncePerKind) {
  Device device;
  device.read(1, 0x24, 4);
  EXPECT_THAT(device.effects.take(), ElementsAre(raise(1, kErrorVector)));
  device.read(1, 0x24, 4);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  device.write(1, GBA_REG_FAULT, ~std::uint64_t{0});
  device.read(1, 0x24, 4);
  EXPECT_THAT(device.effects.take(), ElementsAre(raise(1, kErrorVector)));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_INTERRUPTS), 2U);
}

TEST(DeviceControl, ResetsTheDeviceForThePrivilegedPortOnly) {
  Device device;
  const unsigned first = device.barrier(2);
  const unsigned second = device.alloc(3);
  device.write(0, GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  EXPECT_EQ(device.error(first), unsigned{GBA_ERROR_NONE});
  device.write(device.model.privileged_port(), GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(device.error(first), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(device.error(second), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(device.read(0, GBA_REG_DEV_CONTROL), 0U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_RESETS), 1U);
}

TEST(DeviceControl, DoesNothingWithoutTheResetBit) {
  Device device;
  const unsigned group = device.barrier(1);
  device.write(device.model.privileged_port(), GBA_REG_DEV_CONTROL, 0);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
}

TEST(Kick, IsAcceptedAndChangesNothing) {
  Device device;
  device.write(0, GBA_REG_KICK, 1);
  EXPECT_EQ(device.fault(0), 0U);
}

TEST(Counters, CountWakeups) {
  Device device;
  device.model.count_wakeup();
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_WAKEUPS), 1U);
}

}  // namespace
