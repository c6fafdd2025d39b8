// SPDX-License-Identifier: Apache-2.0
// How many groups a port may have: uapi rule 37.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device_test::Device;
using ::testing::IsEmpty;

constexpr unsigned kGroupsOfAPort = GBA_MAX_GROUPS / 4;  // at power-on

std::uint64_t held(Device& device, unsigned port) {
  return device.read(port, GBA_REG_GROUPS_HELD);
}

void set_limit(Device& device, std::uint64_t limit) {
  device.write(device.model.privileged_port(), GBA_REG_GROUP_LIMIT, limit);
}

TEST(GroupLimit, KeepsOnePortFromTakingAllGroups) {
  Device device;
  EXPECT_NE(device.read(0, GBA_REG_CAPS) & GBA_CAPS_GROUP_LIMIT, 0U);
  EXPECT_EQ(device.read(0, GBA_REG_GROUP_LIMIT), kGroupsOfAPort);
  for (unsigned group = 0; group < kGroupsOfAPort; ++group) {
    EXPECT_EQ(held(device, 0), group);
    EXPECT_EQ(device.alloc(0), group);
  }
  EXPECT_EQ(device.command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_GROUP_LIMIT});
  EXPECT_EQ(device.read(0, GBA_REG_CMD_RESULT), 0U);
  EXPECT_EQ(held(device, 0), kGroupsOfAPort);
  EXPECT_EQ(held(device, 1), 0U);
  EXPECT_EQ(device.alloc(1), kGroupsOfAPort) << "another port";
  device.command(0, GBA_CMD_FREE, 3);
  EXPECT_EQ(device.alloc(0), 3U);
}

TEST(GroupLimit, IsNoneForThePrivilegedPort) {
  Device device;
  const unsigned privileged = device.model.privileged_port();
  for (unsigned group = 0; group < GBA_MAX_GROUPS; ++group) {
    EXPECT_EQ(device.alloc(privileged), group);
  }
  EXPECT_EQ(device.command(privileged, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_NO_FREE_GROUP});
}

TEST(GroupLimit, IsSetByThePrivilegedPortOnly) {
  Device device;
  device.write(0, GBA_REG_GROUP_LIMIT, 32);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  EXPECT_EQ(device.read(0, GBA_REG_GROUP_LIMIT), kGroupsOfAPort);
  set_limit(device, 2);
  EXPECT_EQ(device.read(0, GBA_REG_GROUP_LIMIT), 2U);
  EXPECT_EQ(device.fault(device.model.privileged_port()), 0U);
}

TEST(GroupLimit, IsFromOneToTheNumberOfGroups) {
  Device device;
  const unsigned privileged = device.model.privileged_port();
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{GBA_MAX_GROUPS + 1}, UINT64_MAX}) {
    set_limit(device, wrong);
    EXPECT_EQ(device.fault(privileged), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG)) << wrong;
    EXPECT_EQ(device.read(privileged, GBA_REG_FAULT_ADDR), GBA_REG_GROUP_LIMIT);
    device.write(privileged, GBA_REG_FAULT, UINT64_MAX);
    EXPECT_EQ(device.read(0, GBA_REG_GROUP_LIMIT), kGroupsOfAPort);
  }
  set_limit(device, GBA_MAX_GROUPS);
  for (unsigned group = 0; group < GBA_MAX_GROUPS; ++group) {
    EXPECT_EQ(device.alloc(0), group);
  }
  set_limit(device, 1);
  EXPECT_EQ(device.model.allocated_groups(), GBA_MAX_GROUPS) << "a lower limit takes no group away";
  EXPECT_EQ(device.command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_NO_FREE_GROUP});
  device.command(0, GBA_CMD_FREE, 0);
  EXPECT_EQ(device.command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_GROUP_LIMIT});
}

// Otherwise a port that is reset again and again, while another one stays in its groups, would get all of them.
TEST(GroupLimit, CountsGroupsThatOutliveTheirOwner) {
  Device device;
  set_limit(device, 1);
  const unsigned group = device.barrier(2);
  device.model.disconnect(0);
  device.model.connect(0);
  EXPECT_EQ(held(device, 0), 1U);
  EXPECT_EQ(device.command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_GROUP_LIMIT});
  EXPECT_EQ(held(device, 1), 0U) << "its member has it, and does not pay for it";
  device.command(1, GBA_CMD_LEAVE, group);
  EXPECT_EQ(held(device, 0), 0U);
  EXPECT_EQ(device.alloc(0), group);
}

TEST(GroupLimit, StaysOverResets) {
  Device device;
  set_limit(device, 3);
  device.model.reset_port(0);
  device.model.reset_port(device.model.privileged_port());
  device.model.reset_device();
  EXPECT_EQ(device.read(0, GBA_REG_GROUP_LIMIT), 3U);
}

TEST(GroupLimit, OfASmallDeviceIsAtLeastOne) {
  const auto limit_of = [](unsigned groups) {
    return fake_device::Dimensions{.groups = groups, .members = 2, .ports = 2}.group_limit();
  };
  EXPECT_EQ(limit_of(1), 1U);
  EXPECT_EQ(limit_of(3), 1U);
  EXPECT_EQ(limit_of(8), 2U);
}

TEST(GroupLimit, GroupsHeldIsReadOnly) {
  Device device;
  device.alloc(0);
  device.write(0, GBA_REG_GROUPS_HELD, 0);
  EXPECT_EQ(held(device, 0), 1U);
  EXPECT_THAT(device.effects.events, IsEmpty()) << "dropped without a fault";
}

}  // namespace
