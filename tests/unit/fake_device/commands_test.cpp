// SPDX-License-Identifier: Apache-2.0
// ALLOC, FREE, JOIN, LEAVE, RECLAIM, keys, and the loss of a port. Uapi rules 4, 5 and 24.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device::kNobody;
using fake_device_test::Device;
using fake_device_test::error_word;
using fake_device_test::kErrorVector;
using fake_device_test::raise;
using fake_device_test::store;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Alloc, HandsOutEachGroupOnceAndThenFails) {
  Device device;
  for (unsigned expected = 0; expected < GBA_MAX_GROUPS; ++expected) {
    EXPECT_EQ(device.alloc(expected % 8), expected);
  }
  EXPECT_EQ(device.command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_NO_FREE_GROUP});
  EXPECT_EQ(device.read(0, GBA_REG_CMD_RESULT), 0U);
}

TEST(Alloc, NeverGivesTheKeyZero) {
  Device device;
  device.effects.next_key = 0;
  const unsigned group = device.alloc(0);
  EXPECT_NE(device.keys[group], 0U);
}

TEST(Alloc, HandsOutAGroupInItsInitialState) {
  Device device;
  const unsigned group = device.barrier(2, 7);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 5);
  device.arrive(group, 0, 8);
  device.control(0, group, GBA_CONTROL_RESET);
  ASSERT_EQ(device.command(0, GBA_CMD_FREE, group), unsigned{GBA_CMD_OK});
  ASSERT_EQ(device.alloc(3), group);
  for (const auto offset : {GBA_GROUP_CONTROL, GBA_GROUP_STATUS, GBA_GROUP_SEQUENCE, GBA_GROUP_ERROR_CODE,
                            GBA_GROUP_TIMEOUT, GBA_GROUP_MEMBER_MASK, GBA_GROUP_ARRIVED_MASK}) {
    EXPECT_EQ(device.group_read(group, offset), 0U) << std::hex << offset;
  }
  EXPECT_EQ(device.group_read(group, GBA_GROUP_MEMBER_COUNT, 4), 0U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 0U);
}

TEST(Command, OfAnUnknownKindIsAnError) {
  Device device;
  EXPECT_EQ(device.command(0, 0), unsigned{GBA_CMD_ERROR_OPCODE});
  EXPECT_EQ(device.command(0, 6), unsigned{GBA_CMD_ERROR_OPCODE});
}

TEST(Command, OutcomeBelongsToThePort) {
  Device device;
  device.alloc(0);
  EXPECT_EQ(device.command(1, GBA_CMD_FREE, 0), unsigned{GBA_CMD_ERROR_NOT_OWNER});
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, device.read(0, GBA_REG_CMD_STATUS)), unsigned{GBA_CMD_OK});
}

constexpr std::uint64_t kBusy = GBA_FIELD_PUT(GBA_CMD_STATUS_BUSY, 1);

TEST(SlowCommand, ShowsBusyAndNothingElseUntilItIsDone) {  // uapi rule 4
  Device device;
  device.alloc(0);
  device.effects.command_end = 100;
  device.write(0, GBA_REG_CMD, GBA_CMD_ALLOC);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), kBusy);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_RESULT), 0U) << "not that of the command before";
  EXPECT_EQ(device.model.allocated_groups(), 1U);
  EXPECT_EQ(device.model.next_deadline(), 100U);
  device.model.expire(99);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), kBusy);
  device.model.expire(100);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), 0U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, device.read(0, GBA_REG_CMD_RESULT)), 1U);
  EXPECT_EQ(device.model.next_deadline(), fake_device::kNever);
}

TEST(SlowCommand, DropsAnotherOneAsAFault) {
  Device device;
  device.alloc(0);
  device.effects.command_end = 100;
  device.write(0, GBA_REG_CMD, GBA_CMD_ALLOC);
  device.write(0, GBA_REG_CMD, GBA_CMD_FREE);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  device.model.expire(100);
  EXPECT_EQ(device.model.allocated_groups(), 2U) << "the first one was done, the second was not";
}

TEST(SlowCommand, OfOnePortIsNoneOfAnother) {
  Device device;
  device.effects.command_end = 100;
  device.write(0, GBA_REG_CMD, GBA_CMD_ALLOC);
  EXPECT_EQ(device.command(1, GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
  device.effects.slow_port = 2;
  device.effects.command_end = 50;
  device.write(2, GBA_REG_CMD, GBA_CMD_FREE);
  EXPECT_EQ(device.model.next_deadline(), 50U);
  device.model.expire(60);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, device.read(2, GBA_REG_CMD_STATUS)), unsigned{GBA_CMD_ERROR_NOT_OWNER});
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), kBusy);
  EXPECT_EQ(device.model.next_deadline(), 100U);
}

TEST(SlowCommand, EndsWithAResetOfItsPort) {
  Device device;
  device.effects.command_end = 100;
  device.write(0, GBA_REG_CMD, GBA_CMD_ALLOC);
  device.model.reset_port(0);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), 0U);
  device.model.expire(100);
  EXPECT_EQ(device.model.allocated_groups(), 0U) << "nobody would know of the group";
}

TEST(SlowCommand, OfADeviceWithAFatalErrorIsDoneToo) {
  Device device;
  device.effects.command_end = 100;
  device.write(0, GBA_REG_CMD, GBA_CMD_ALLOC);
  device.model.break_down();
  device.model.expire(100);
  EXPECT_EQ(device.read(0, GBA_REG_CMD_STATUS), 0U);
  EXPECT_EQ(device.model.next_deadline(), fake_device::kNever);
}

TEST(Free, UnbindsAllMembersAndGivesTheGroupBack) {
  Device device;
  const unsigned group = device.barrier(2);
  EXPECT_EQ(device.command(0, GBA_CMD_FREE, group), unsigned{GBA_CMD_OK});
  EXPECT_THAT(device.effects.members, IsEmpty());
  EXPECT_EQ(device.command(0, GBA_CMD_FREE, group), unsigned{GBA_CMD_ERROR_GROUP});
  EXPECT_EQ(device.alloc(1), group);
}

TEST(Free, AnswersTheMembersOfAnEnabledGroupFirst) {
  Device device;
  const unsigned group = device.barrier(2, 4);
  device.arrive(group, 1, 5, /*notify=*/true);
  device.command(0, GBA_CMD_FREE, group);
  EXPECT_EQ((device.effects.flags[{1, group}]), error_word(GBA_ERROR_LEAVE, 4));
  EXPECT_THAT(device.effects.events, Contains(raise(1, group)));
}

TEST(Free, OfAGroupThatWasNeverEnabledIsSilent) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 2);
  device.join(1, group, 1);
  device.command(0, GBA_CMD_FREE, group);
  EXPECT_THAT(device.effects.events, IsEmpty());
  EXPECT_THAT(device.effects.members, IsEmpty());
}

TEST(Join, IsRefusedForEachReasonByItsCode) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 3);
  const auto key = device.keys[group];
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, 32, 0, key), unsigned{GBA_CMD_ERROR_GROUP});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group + 1, 0, key), unsigned{GBA_CMD_ERROR_GROUP});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 3, key), unsigned{GBA_CMD_ERROR_MEMBER});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 708, key), unsigned{GBA_CMD_ERROR_MEMBER});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 0xffff, key), unsigned{GBA_CMD_ERROR_MEMBER});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 0, key + 1), unsigned{GBA_CMD_ERROR_KEY});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 0, key), unsigned{GBA_CMD_OK});
  EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 1, key), unsigned{GBA_CMD_ERROR_ALREADY_JOINED});
  EXPECT_EQ(device.command(2, GBA_CMD_JOIN, group, 0, key), unsigned{GBA_CMD_ERROR_MEMBER_TAKEN});
}

TEST(Join, LocksAPortOutAfterSixteenWrongKeys) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 2);
  const auto key = device.keys[group];
  for (unsigned attempt = 0; attempt < GBA_MAX_WRONG_KEYS; ++attempt) {
    EXPECT_EQ(device.command(1, GBA_CMD_JOIN, group, 0, key + 1), unsigned{GBA_CMD_ERROR_KEY});
  }
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_KEY));
  EXPECT_EQ(device.join(1, group, 0), unsigned{GBA_CMD_ERROR_LOCKED_OUT});
  EXPECT_EQ(device.join(2, group, 0), unsigned{GBA_CMD_OK}) << "no other port is locked out";
  device.model.disconnect(1);
  device.model.connect(1);
  EXPECT_EQ(device.join(1, group, 1), unsigned{GBA_CMD_ERROR_LOCKED_OUT}) << "also after a new connection";
  device.command(0, GBA_CMD_FREE, group);
  device.alloc(0);
  device.configure(0, group, 2);
  EXPECT_EQ(device.join(1, group, 1), unsigned{GBA_CMD_OK}) << "a new group starts without a lockout";
}

TEST(Join, IsStillPossibleAfterFifteenWrongKeys) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 1);
  for (unsigned attempt = 0; attempt < GBA_MAX_WRONG_KEYS - 1; ++attempt) {
    device.command(1, GBA_CMD_JOIN, group, 0, 1);
  }
  EXPECT_EQ(device.join(1, group, 0), unsigned{GBA_CMD_OK});
}

TEST(Leave, NeedsAMembership) {
  Device device;
  const unsigned group = device.barrier(1);
  EXPECT_EQ(device.command(1, GBA_CMD_LEAVE, group), unsigned{GBA_CMD_ERROR_NOT_JOINED});
  EXPECT_EQ(device.command(1, GBA_CMD_LEAVE, group + 1), unsigned{GBA_CMD_ERROR_GROUP});
  EXPECT_EQ(device.command(1, GBA_CMD_LEAVE, 255), unsigned{GBA_CMD_ERROR_GROUP});
}

TEST(Leave, OfAnEnabledGroupIsAnErrorForTheOthers) {
  Device device;
  const unsigned group = device.barrier(3, 9);
  EXPECT_EQ(device.command(1, GBA_CMD_LEAVE, group), unsigned{GBA_CMD_OK});
  const auto word = error_word(GBA_ERROR_LEAVE, 9);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, word), store(2, group, word), raise(0, kErrorVector),
                                                 raise(2, kErrorVector)));
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(device.error_member(group), 1U);
}

TEST(Leave, OfAGroupThatIsNotEnabledOnlyFreesThePlace) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 2);
  device.join(1, group, 1);
  EXPECT_EQ(device.command(1, GBA_CMD_LEAVE, group), unsigned{GBA_CMD_OK});
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.join(2, group, 1), unsigned{GBA_CMD_OK});
}

TEST(Leave, OfAGroupWhoseEnableWasClearedFreesThePlaceToo) {
  Device device;
  const unsigned group = device.barrier(2);
  device.control(0, group, GBA_CONTROL_ARM);
  device.command(1, GBA_CMD_LEAVE, group);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.join(2, group, 1), unsigned{GBA_CMD_OK});
  device.arrive(group, 0, 1);
  device.model.arrive(2, group, Device::word(1, 1), 0);
  EXPECT_EQ(device.sequence(group), 1U);
}

TEST(Join, ForgetsTheFlagAddressOfThePreviousMember) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 1);
  device.join(0, group, 0);
  device.group_write(0, group, GBA_GROUP_RELEASE_ADDR, 0x5000);
  device.command(0, GBA_CMD_LEAVE, group);
  device.join(1, group, 0);
  device.control(0, group, Device::kRunning);
  device.model.arrive(1, group, Device::word(0, 1), 0);
  EXPECT_EQ((device.effects.addresses[{1, group}]), GBA_RELEASE_ADDR_BAR_FLAGS);
}

TEST(Leave, ForgetsANotify) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 1, 1, /*notify=*/true);
  device.command(1, GBA_CMD_LEAVE, group);
  EXPECT_THAT(device.effects.take(),
              ElementsAre(store(0, group, error_word(GBA_ERROR_LEAVE, 0)), raise(0, kErrorVector)));
}

TEST(LostPort, LeavesAllItsGroups) {
  Device device;
  const unsigned first = device.barrier(2);
  const unsigned second = device.barrier(3, 4);
  device.model.disconnect(1);
  EXPECT_EQ(device.error(first), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(device.error(second), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ((device.effects.flags[{2, second}]), error_word(GBA_ERROR_LEAVE, 4));
  EXPECT_EQ((device.effects.flags[{1, second}]), 0U) << "the device stores nothing to the lost port";
}

TEST(LostPort, StartsInItsInitialStateWhenItReconnects) {
  Device device;
  device.alloc(1);
  device.read(1, 0x24, 4);
  device.model.disconnect(1);
  device.model.connect(1);
  EXPECT_EQ(device.fault(1), 0U);
  EXPECT_EQ(device.read(1, GBA_REG_CMD_RESULT), 0U);
}

TEST(LostOwner, OfAnEnabledGroupLeavesTheGroupInErrorUntilTheLastMemberLeaves) {
  Device device;
  const unsigned group = device.barrier(3, 2);
  device.model.disconnect(0);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(device.error_member(group), 0U);
  device.effects.take();
  device.arrive(group, 1, 3);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(1, group, error_word(GBA_ERROR_LEAVE, 2))));
  device.command(1, GBA_CMD_LEAVE, group);
  EXPECT_NE(device.error(group), unsigned{GBA_ERROR_NONE}) << "one member is left";
  device.model.disconnect(2);
  EXPECT_EQ(device.alloc(3), group);
}

TEST(LostOwner, WithoutAMembershipNamesNoMember) {
  Device device;
  const unsigned group = device.alloc(5);
  device.configure(5, group, 1);
  device.control(5, group, Device::kRunning);
  device.join(0, group, 0);
  device.model.disconnect(5);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(device.error_member(group), kNobody);
}

TEST(LostOwner, OfAGroupWithoutMembersOrNeverEnabledFreesIt) {
  Device device;
  const unsigned unused = device.alloc(4);
  device.configure(4, unused, 1);
  device.control(4, unused, Device::kRunning);
  const unsigned never_enabled = device.alloc(4);
  device.configure(4, never_enabled, 1);
  device.join(1, never_enabled, 0);
  device.model.disconnect(4);
  EXPECT_EQ(device.alloc(1), unused);
  EXPECT_EQ(device.alloc(1), never_enabled);
}

TEST(LostOwner, OfADisarmedGroupSendsItsMembersAnError) {
  Device device;
  const unsigned group = device.alloc(4);
  device.configure(4, group, 1);
  device.control(4, group, GBA_CONTROL_ENABLE);
  device.join(1, group, 0);
  device.model.arrive(1, group, Device::word(0, 1), 0);
  device.model.disconnect(4);
  EXPECT_EQ((device.effects.flags[{1, group}]), error_word(GBA_ERROR_LEAVE, 1));
}

TEST(Reclaim, FreesAnOrphanForThePrivilegedPortOnly) {
  Device device;
  const unsigned privileged = device.model.privileged_port();
  const unsigned group = device.barrier(2);
  EXPECT_EQ(device.command(privileged, GBA_CMD_RECLAIM, group), unsigned{GBA_CMD_ERROR_NOT_PRIVILEGED})
      << "its owner is still connected";
  device.model.disconnect(0);
  EXPECT_EQ(device.command(1, GBA_CMD_RECLAIM, group), unsigned{GBA_CMD_ERROR_NOT_PRIVILEGED});
  EXPECT_EQ(device.command(privileged, GBA_CMD_RECLAIM, group), unsigned{GBA_CMD_OK});
  EXPECT_EQ(device.command(privileged, GBA_CMD_RECLAIM, group), unsigned{GBA_CMD_ERROR_GROUP});
  EXPECT_EQ(device.alloc(1), group);
}

TEST(ResetOfAPort, CountsAsALeaveAndKeepsTheConnection) {
  Device device;
  const unsigned group = device.barrier(2);
  device.model.reset_port(1);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(device.alloc(1), group + 1);
}

}  // namespace
