// SPDX-License-Identifier: Apache-2.0
#include "fake_device/profile.hpp"

#include <array>

#include "uapi/gba_switch_regs.h"

namespace fake_device {

namespace {

constexpr std::array kDevice{
    RegisterEntry{GBA_REG_MAGIC, 4, 1, Register::kMagic},
    RegisterEntry{GBA_REG_VERSION, 4, 1, Register::kVersion},
    RegisterEntry{GBA_REG_CAPS, 8, 1, Register::kCaps},
    RegisterEntry{GBA_REG_DEV_CONTROL, 8, 1, Register::kDevControl},
    RegisterEntry{GBA_REG_DEV_STATUS, 8, 1, Register::kDevStatus},
    RegisterEntry{GBA_REG_PORT_ID, 4, 1, Register::kPortId},
    RegisterEntry{GBA_REG_CMD, 8, 1, Register::kCmd},
    RegisterEntry{GBA_REG_CMD_STATUS, 8, 1, Register::kCmdStatus},
    RegisterEntry{GBA_REG_CMD_RESULT, 8, 1, Register::kCmdResult},
    RegisterEntry{GBA_REG_FAULT, 8, 1, Register::kFault},
    RegisterEntry{GBA_REG_FAULT_INFO, 8, 1, Register::kFaultInfo},
    RegisterEntry{GBA_REG_FAULT_ADDR, 8, 1, Register::kFaultAddr},
    RegisterEntry{GBA_REG_KICK, 8, 1, Register::kKick},
    RegisterEntry{GBA_REG_GROUP_LIMIT, 8, 1, Register::kGroupLimit},
    RegisterEntry{GBA_REG_GROUPS_HELD, 8, 1, Register::kGroupsHeld},
    RegisterEntry{GBA_REG_COUNTER_ARRIVALS, 8, (GBA_REG_COUNTERS_END - GBA_REG_COUNTER_ARRIVALS) / 8,
                  Register::kCounter},
};

constexpr std::array kGroup{
    RegisterEntry{GBA_GROUP_ID, 4, 1, Register::kGroupId},
    RegisterEntry{GBA_GROUP_MEMBER_COUNT, 4, 1, Register::kMemberCount},
    RegisterEntry{GBA_GROUP_ARRIVAL_COUNT, 4, 1, Register::kArrivalCount},
    RegisterEntry{GBA_GROUP_MEMBER_MASK, 8, GBA_MASK_WORDS, Register::kMemberMask},
    RegisterEntry{GBA_GROUP_ARRIVED_MASK, 8, GBA_MASK_WORDS, Register::kArrivedMask},
    RegisterEntry{GBA_GROUP_CONTROL, 8, 1, Register::kControl},
    RegisterEntry{GBA_GROUP_STATUS, 8, 1, Register::kStatus},
    RegisterEntry{GBA_GROUP_SEQUENCE, 8, 1, Register::kSequence},
    RegisterEntry{GBA_GROUP_ERROR_CODE, 8, 1, Register::kErrorCode},
    RegisterEntry{GBA_GROUP_TIMEOUT, 8, 1, Register::kTimeout},
    RegisterEntry{GBA_GROUP_ROUND_AGE, 8, 1, Register::kRoundAge},
    RegisterEntry{GBA_GROUP_MEMBER_PORT, 8, GBA_MEMBER_PORT_WORDS, Register::kMemberPorts16},
    RegisterEntry{GBA_GROUP_RELEASE_ADDR, 8, GBA_MAX_MEMBERS, Register::kReleaseAddr},
};

constexpr std::array kSwitchGroup{
    RegisterEntry{GBA_SWITCH_NETWORK_ADDR, 8, 1, Register::kNetworkAddr},
    RegisterEntry{GBA_SWITCH_GROUP_ID, 8, 1, Register::kGroupId},
    RegisterEntry{GBA_SWITCH_MEMBER_MASK, 8, GBA_SWITCH_MASK_WORDS, Register::kMemberMask},
    RegisterEntry{GBA_SWITCH_MEMBER_COUNT, 8, 1, Register::kMemberCount},
    RegisterEntry{GBA_SWITCH_CONTROL, 8, 1, Register::kControl},
    RegisterEntry{GBA_SWITCH_STATUS, 8, 1, Register::kStatus},
    RegisterEntry{GBA_SWITCH_ARRIVED_MASK, 8, GBA_SWITCH_MASK_WORDS, Register::kArrivedMask},
    RegisterEntry{GBA_SWITCH_LOCAL_MEMBER_ID, 8, 1, Register::kLocalMemberId},
    RegisterEntry{GBA_SWITCH_RELEASE_ADDR, 8, 1, Register::kLocalReleaseAddr},
    RegisterEntry{GBA_SWITCH_ARRIVAL_ADDR, 8, 1, Register::kArrivalAddr},
    RegisterEntry{GBA_SWITCH_SEQUENCE, 8, 1, Register::kSequence},
    RegisterEntry{GBA_SWITCH_ERROR_CODE, 8, 1, Register::kErrorCode},
    RegisterEntry{GBA_SWITCH_TIMEOUT, 8, 1, Register::kTimeout},
    RegisterEntry{GBA_SWITCH_ROUND_AGE, 8, 1, Register::kRoundAge},
    RegisterEntry{GBA_SWITCH_MEMBER_PORT, 8, GBA_SWITCH_MEMBER_PORT_WORDS, Register::kMemberPorts8},
};

std::optional<RegisterRef> find_in(std::span<const RegisterEntry> table, std::uint64_t offset, std::uint64_t size) {
  for (const auto& entry : table) {
    if (offset >= entry.offset && offset - entry.offset < std::uint64_t{entry.size} * entry.count) {
      const auto within = offset - entry.offset;
      if (size != entry.size || within % entry.size != 0) {
        return std::nullopt;
      }
      return RegisterRef{.id = entry.id, .group = 0, .index = static_cast<unsigned>(within / entry.size)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<RegisterRef> Layout::find(std::uint64_t offset, std::uint64_t size) const {
  if (offset < base_) {
    return find_in(device_, offset, size);
  }
  const auto group = (offset - base_) / stride_;
  if (group >= groups_) {
    return std::nullopt;
  }
  auto found = find_in(group_, (offset - base_) % stride_, size);
  if (found) {
    found->group = static_cast<unsigned>(group);
  }
  return found;
}

const Layout& gba_layout() {
  static constexpr Layout layout(kDevice, kGroup, GBA_GROUPS_OFFSET, GBA_GROUP_STRIDE, GBA_MAX_GROUPS);
  return layout;
}

const Layout& switch_layout() {
  static constexpr Layout layout(kDevice, kSwitchGroup, GBA_SWITCH_GROUPS_OFFSET, GBA_SWITCH_GROUP_STRIDE,
                                 GBA_SWITCH_MAX_GROUPS);
  return layout;
}

const Profile& gba_profile() {
  static const Profile profile{.name = "gba",
                               .pci_device_id = GBA_PCI_DEVICE_ID,
                               .groups = GBA_MAX_GROUPS,
                               .members = GBA_MAX_MEMBERS,
                               .most_ports = GBA_MAX_MEMBERS,
                               .layout = gba_layout()};
  return profile;
}

const Profile& switch_profile() {
  static const Profile profile{.name = "switch",
                               .pci_device_id = GBA_PCI_DEVICE_ID_SWITCH,
                               .groups = GBA_SWITCH_MAX_GROUPS,
                               .members = GBA_SWITCH_MAX_MEMBERS,
                               .most_ports = (1U << GBA_SWITCH_MEMBER_PORT_BITS) - 2,
                               .layout = switch_layout()};
  return profile;
}

}  // namespace fake_device
