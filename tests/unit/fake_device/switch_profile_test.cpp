// SPDX-License-Identifier: Apache-2.0
// The profile of 256 groups with 128 members: another register map, the same barrier.
#include "fake_device/profile.hpp"
#include "tests/unit/fake_device/model_fixture.hpp"
#include "uapi/gba_switch_regs.h"

namespace {

using fake_device::Model;
using fake_device::switch_profile;
using fake_device_test::Device;
using fake_device_test::error_word;
using fake_device_test::RecordingEffects;

constexpr unsigned kLastGroup = GBA_SWITCH_MAX_GROUPS - 1;

class Switch : public ::testing::Test {
 protected:
  Switch() {
    for (unsigned port = 0; port <= GBA_SWITCH_MAX_MEMBERS; ++port) {
      model_.connect(port);
    }
  }
  std::uint64_t read(unsigned port, unsigned group, std::uint64_t offset) {
    return model_.read(port, GBA_SWITCH_GROUP_BASE(group) + offset, 8);
  }
  void write(unsigned port, unsigned group, std::uint64_t offset, std::uint64_t value) {
    model_.write(port, GBA_SWITCH_GROUP_BASE(group) + offset, 8, value);
  }
  unsigned command(unsigned port, unsigned opcode, unsigned group = 0, unsigned member = 0, std::uint32_t key = 0) {
    model_.write(port, GBA_REG_CMD, 8,
                 GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
                     GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key));
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, model_.read(port, GBA_REG_CMD_STATUS, 8)));
  }
  /// Allocates a group for port 0 with the first `members` ports, all joined. Returns its number.
  unsigned barrier(unsigned members) {
    EXPECT_EQ(command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
    const auto result = model_.read(0, GBA_REG_CMD_RESULT, 8);
    const auto group = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result));
    const auto key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result));
    write(0, group, GBA_SWITCH_MEMBER_COUNT, members);
    for (unsigned word = 0; word < GBA_SWITCH_MASK_WORDS; ++word) {
      const unsigned bits = std::min(64U, members - std::min(members, 64 * word));
      write(0, group, GBA_SWITCH_MEMBER_MASK + 8 * word, bits == 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1);
    }
    for (unsigned member = 0; member < members; ++member) {
      EXPECT_EQ(command(member, GBA_CMD_JOIN, group, member, key), unsigned{GBA_CMD_OK});
    }
    write(0, group, GBA_SWITCH_CONTROL, Device::kRunning);
    effects_.take();
    return group;
  }

  RecordingEffects effects_;
  Model model_{switch_profile().dimensions(GBA_SWITCH_MAX_MEMBERS), switch_profile().layout, effects_};
};

TEST_F(Switch, ReportsItsSize) {
  const auto caps = model_.read(0, GBA_REG_CAPS, 8);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_GROUPS, caps), 256U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_CAPS_MEMBERS, caps), 128U);
  EXPECT_EQ(model_.read(0, GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
}

TEST_F(Switch, HasEveryGroupsBlockAtItsDocumentedOffset) {
  for (unsigned group = 0; group <= kLastGroup; ++group) {
    EXPECT_EQ(read(0, group, GBA_SWITCH_GROUP_ID), group);
    EXPECT_EQ(read(0, group, GBA_SWITCH_ARRIVAL_ADDR), GBA_DOORBELL_SLOT(group));
  }
  EXPECT_EQ(model_.read(0, GBA_REG_FAULT, 8), 0U);
  read(0, kLastGroup + 1, GBA_SWITCH_GROUP_ID);
  EXPECT_EQ(model_.read(0, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
}

TEST_F(Switch, HasNoRegisterOfTheOtherProfile) {
  model_.read(0, GBA_SWITCH_GROUP_BASE(0) + GBA_GROUP_MEMBER_COUNT, 4);
  EXPECT_EQ(model_.read(0, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
}

TEST_F(Switch, ReleasesAllItsMembers) {
  const unsigned group = barrier(GBA_SWITCH_MAX_MEMBERS);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    EXPECT_EQ(read(0, group, GBA_SWITCH_STATUS) & GBA_STATUS_READY, GBA_STATUS_READY);
    for (unsigned member = 0; member < GBA_SWITCH_MAX_MEMBERS; ++member) {
      EXPECT_TRUE(effects_.events.empty());
      model_.arrive(member, group, Device::word(member, round), 0);
    }
    EXPECT_EQ(effects_.take().size(), GBA_SWITCH_MAX_MEMBERS);
    EXPECT_EQ(read(0, group, GBA_SWITCH_SEQUENCE), round);
  }
}

TEST_F(Switch, ReportsArrivalsInTwoWords) {
  const unsigned group = barrier(66);
  model_.arrive(1, group, Device::word(1, 1), 0);
  model_.arrive(65, group, Device::word(65, 1), 0);
  EXPECT_EQ(read(3, group, GBA_SWITCH_ARRIVED_MASK), 2U);
  EXPECT_EQ(read(3, group, GBA_SWITCH_ARRIVED_MASK + 8), 2U);
  EXPECT_EQ(read(3, group, GBA_SWITCH_STATUS), GBA_STATUS_ACTIVE);
}

TEST_F(Switch, HasPerPortRegisters) {
  const unsigned group = barrier(2);
  EXPECT_EQ(read(1, group, GBA_SWITCH_LOCAL_MEMBER_ID), 1U);
  EXPECT_EQ(read(2, group, GBA_SWITCH_LOCAL_MEMBER_ID), GBA_SWITCH_NO_MEMBER);
  write(0, group, GBA_SWITCH_RELEASE_ADDR, 0x1000);
  write(1, group, GBA_SWITCH_RELEASE_ADDR, 0x2000);
  write(2, group, GBA_SWITCH_RELEASE_ADDR, 0x3000);
  EXPECT_EQ(model_.read(2, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  EXPECT_EQ(read(0, group, GBA_SWITCH_RELEASE_ADDR), 0U) << "write-only";
  model_.arrive(0, group, Device::word(0, 1), 0);
  model_.arrive(1, group, Device::word(1, 1), 0);
  EXPECT_EQ((effects_.addresses[{0, group}]), 0x1000U);
  EXPECT_EQ((effects_.addresses[{1, group}]), 0x2000U);
}

TEST_F(Switch, ReportsThePortOfEachMember) {
  const unsigned group = barrier(9);
  EXPECT_EQ(read(5, group, GBA_SWITCH_MEMBER_PORT), 0x0706050403020100U);
  EXPECT_EQ(read(5, group, GBA_SWITCH_MEMBER_PORT + 8), 0xffffffffffffff08U);
  EXPECT_EQ(read(5, group, GBA_SWITCH_MEMBER_PORT + 8 * (GBA_SWITCH_MEMBER_PORT_WORDS - 1)), UINT64_MAX);
  EXPECT_EQ(read(5, group, GBA_SWITCH_ROUND_AGE), 0U);
}

TEST_F(Switch, LetsOnlyTheOwnerSetTheNetworkAddress) {
  command(0, GBA_CMD_ALLOC);
  write(0, 0, GBA_SWITCH_NETWORK_ADDR, 0x1234);
  write(1, 0, GBA_SWITCH_NETWORK_ADDR, 0x5678);
  EXPECT_EQ(read(2, 0, GBA_SWITCH_NETWORK_ADDR), 0x1234U);
  EXPECT_EQ(model_.read(1, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  command(0, GBA_CMD_FREE, 0);
  command(0, GBA_CMD_ALLOC);
  EXPECT_EQ(read(0, 0, GBA_SWITCH_NETWORK_ADDR), 0U);
  const unsigned enabled = barrier(1);
  write(0, enabled, GBA_SWITCH_NETWORK_ADDR, 1);
  EXPECT_EQ(model_.read(0, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
}

TEST_F(Switch, RefusesTooManyMembers) {
  command(0, GBA_CMD_ALLOC);
  write(0, 0, GBA_SWITCH_MEMBER_COUNT, GBA_SWITCH_MAX_MEMBERS + 1);
  EXPECT_EQ(model_.read(0, GBA_REG_FAULT, 8), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
  EXPECT_EQ(read(0, 0, GBA_SWITCH_MEMBER_COUNT), 0U);
}

TEST_F(Switch, AllocatesEveryGroupAndReportsErrorsOfTheLast) {
  const unsigned privileged = model_.privileged_port();  // which has no limit
  for (unsigned group = 0; group <= kLastGroup; ++group) {
    ASSERT_EQ(command(privileged, GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
  }
  EXPECT_EQ(command(privileged, GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_NO_FREE_GROUP});
  command(privileged, GBA_CMD_FREE, kLastGroup);
  const unsigned group = [&] {
    EXPECT_EQ(command(0, GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, model_.read(0, GBA_REG_CMD_RESULT, 8)));
  }();
  EXPECT_EQ(group, kLastGroup);
  const auto key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, model_.read(0, GBA_REG_CMD_RESULT, 8)));
  write(0, group, GBA_SWITCH_MEMBER_MASK, 1);
  write(0, group, GBA_SWITCH_MEMBER_COUNT, 1);
  command(0, GBA_CMD_JOIN, group, 0, key);
  write(0, group, GBA_SWITCH_CONTROL, Device::kRunning | GBA_CONTROL_RESET);
  EXPECT_EQ((effects_.flags[{0, group}]), error_word(GBA_ERROR_RESET, 0));
  EXPECT_EQ(effects_.events.back(), fake_device_test::raise(0, GBA_SWITCH_MSIX_ERROR_VECTOR));
}

}  // namespace
