// SPDX-License-Identifier: Apache-2.0
#include "fake_device/model.hpp"

#include <algorithm>

#include "uapi/gba_switch_regs.h"

namespace fake_device {
namespace {

constexpr std::uint64_t kFeatures =
    GBA_CAPS_BAR_FLAGS | GBA_CAPS_WAKEUP | GBA_CAPS_NOTIFY | GBA_CAPS_LINK_EVENTS | GBA_CAPS_GROUP_LIMIT;

std::uint64_t version() {
  return GBA_FIELD_PUT(GBA_VERSION_MAJOR_FIELD, GBA_VERSION_MAJOR) |
         GBA_FIELD_PUT(GBA_VERSION_MINOR_FIELD, GBA_VERSION_MINOR);
}

bool is_group_register(Register id) {
  return id >= Register::kGroupId;
}

bool read_only(Register id) {
  switch (id) {
    case Register::kDevControl:
    case Register::kCmd:
    case Register::kFault:
    case Register::kKick:
    case Register::kGroupLimit:
    case Register::kMemberCount:
    case Register::kMemberMask:
    case Register::kControl:
    case Register::kSequence:
    case Register::kTimeout:
    case Register::kReleaseAddr:
    case Register::kNetworkAddr:
    case Register::kLocalReleaseAddr:
      return false;
    case Register::kMagic:
    case Register::kVersion:
    case Register::kCaps:
    case Register::kDevStatus:
    case Register::kPortId:
    case Register::kCmdStatus:
    case Register::kCmdResult:
    case Register::kFaultInfo:
    case Register::kFaultAddr:
    case Register::kGroupsHeld:
    case Register::kCounter:
    case Register::kGroupId:
    case Register::kArrivalCount:
    case Register::kArrivedMask:
    case Register::kStatus:
    case Register::kErrorCode:
    case Register::kLocalMemberId:
    case Register::kArrivalAddr:
    case Register::kRoundAge:
    case Register::kMemberPorts16:
    case Register::kMemberPorts8:
      return true;
  }
  return true;
}

}  // namespace

Model::Model(const Dimensions& dimensions, const Layout& layout, Effects& effects, std::uint64_t features)
    : dimensions_(dimensions),
      layout_(layout),
      features_(kFeatures | features),
      ports_(dimensions, effects),
      group_limit_(dimensions.group_limit()) {
  groups_.reserve(dimensions.groups);
  for (unsigned id = 0; id < dimensions.groups; ++id) {
    groups_.emplace_back(id, dimensions_, ports_);
  }
}

void Model::connect(unsigned port) {
  ports_[port].connected = true;
}

void Model::reset_port(unsigned port) {  // uapi rule 24
  for (unsigned group = 0; group < groups_.size(); ++group) {
    const int member = ports_[port].member_of[group];
    if (member != kNoMember) {
      groups_[group].leave(static_cast<unsigned>(member));
    }
    if (groups_[group].owned_by(port)) {
      groups_[group].lose_owner();
    }
  }
  ports_[port].faults = {};
  ports_[port].cmd_status = 0;
  ports_[port].cmd_result = 0;
  ports_[port].command_due = kNever;
}

void Model::disconnect(unsigned port) {
  reset_port(port);
  ports_[port].connected = false;
}

std::uint64_t Model::read(unsigned port, std::uint64_t offset, std::uint64_t size, Time now) {
  const auto target = layout_.find(offset, size);
  if (!target) {
    ports_.fault(port, {.kind = GBA_FAULT_BAD_ACCESS, .address = offset});
    return 0;
  }
  return is_group_register(target->id) ? read_group(port, *target, now) : read_device(port, *target);
}

std::uint64_t Model::read_device(unsigned port, const RegisterRef& target) {
  switch (target.id) {
    case Register::kMagic:
      return GBA_MAGIC_VALUE;
    case Register::kVersion:
      return version();
    case Register::kCaps:
      return GBA_FIELD_PUT(GBA_CAPS_GROUPS, dimensions_.groups) | GBA_FIELD_PUT(GBA_CAPS_MEMBERS, dimensions_.members) |
             features_;
    case Register::kDevStatus:
      return device_status(port);
    case Register::kPortId:
      return port;
    case Register::kCmdStatus:
      return ports_[port].cmd_status;
    case Register::kCmdResult:
      return ports_[port].cmd_result;
    case Register::kFault:
      return ports_[port].faults.bits();
    case Register::kFaultInfo:
      return ports_[port].faults.info();
    case Register::kFaultAddr:
      return ports_[port].faults.address();
    case Register::kGroupLimit:
      return group_limit_;
    case Register::kGroupsHeld:
      return groups_held(port);
    case Register::kCounter:
      return ports_.counter(target.index);
    default:  // DEV_CONTROL reads 0, the others are write-only
      return 0;
  }
}

std::uint64_t Model::device_status(unsigned port) const {
  return (fatal_ ? GBA_DEV_STATUS_FATAL : GBA_DEV_STATUS_READY) | (ports_[port].link_up ? GBA_DEV_STATUS_LINK_UP : 0);
}

std::uint64_t Model::read_group(unsigned port, const RegisterRef& target, Time now) const {
  switch (target.id) {  // what is so whether or not the group is allocated
    case Register::kGroupId:
      return target.group;
    case Register::kArrivalAddr:
      return GBA_DOORBELL_SLOT(target.group);
    case Register::kLocalMemberId: {
      const int member = ports_[port].member_of[target.group];
      return member == kNoMember ? GBA_SWITCH_NO_MEMBER : static_cast<std::uint64_t>(member);
    }
    default:
      break;
  }
  const DeviceGroup& group = groups_[target.group];
  if (!group.allocated()) {
    const bool ports = target.id == Register::kMemberPorts16 || target.id == Register::kMemberPorts8;
    return ports ? UINT64_MAX : 0;  // no member has joined (uapi rule 8), and 0 would be a port
  }
  switch (target.id) {
    case Register::kMemberCount:
      return group.member_count();
    case Register::kArrivalCount:
      return group.arrival_count();
    case Register::kMemberMask:
      return group.member_mask(target.index);
    case Register::kArrivedMask:
      return group.arrived_mask(target.index);
    case Register::kControl:
      return group.control();
    case Register::kStatus:
      return group.status();
    case Register::kSequence:
      return group.sequence();
    case Register::kErrorCode:
      return group.error_code();
    case Register::kTimeout:
      return group.timeout();
    case Register::kNetworkAddr:
      return group.network_address();
    case Register::kRoundAge:
      return group.round_age(now);
    case Register::kMemberPorts16:
      return group.member_ports(target.index, GBA_MEMBER_PORT_BITS);
    case Register::kMemberPorts8:
      return group.member_ports(target.index, GBA_SWITCH_MEMBER_PORT_BITS);
    default:  // RELEASE_ADDR is write-only
      return 0;
  }
}

void Model::write(unsigned port, std::uint64_t offset, std::uint64_t size, std::uint64_t value) {
  const auto target = layout_.find(offset, size);
  if (!target) {
    ports_.fault(port, {.kind = GBA_FAULT_BAD_ACCESS, .value = value, .address = offset});
    return;
  }
  if (read_only(target->id)) {
    return;
  }
  if (!may_write(port, *target)) {
    ports_.fault(port, {.kind = GBA_FAULT_NOT_PERMITTED, .group = target->group, .value = value, .address = offset});
    return;
  }
  const bool fits =
      is_group_register(target->id) ? set_group_register(port, *target, value) : write_device(port, *target, value);
  if (!fits) {
    ports_.fault(port, {.kind = GBA_FAULT_BAD_CONFIG, .group = target->group, .value = value, .address = offset});
  }
  refresh_deadline();
}

bool Model::may_write(unsigned port, const RegisterRef& target) {  // uapi rules 4, 6, 23 and 37
  if (target.id == Register::kDevControl || target.id == Register::kGroupLimit) {
    return ports_[port].privileged;
  }
  if (target.id == Register::kCmd) {  // uapi rule 4
    return GBA_FIELD_GET(GBA_CMD_STATUS_BUSY, ports_[port].cmd_status) == 0;
  }
  if (target.id == Register::kReleaseAddr) {
    return ports_[port].member_of[target.group] == static_cast<int>(target.index);
  }
  if (target.id == Register::kLocalReleaseAddr) {
    return ports_[port].member_of[target.group] != kNoMember;
  }
  return !is_group_register(target.id) || groups_[target.group].owned_by(port);
}

/// False: the register cannot have this value.
bool Model::write_device(unsigned port, const RegisterRef& target, std::uint64_t value) {
  if (target.id == Register::kGroupLimit) {
    if (value == 0 || value > dimensions_.groups) {
      return false;
    }
    group_limit_ = value;
  } else if (target.id == Register::kCmd) {
    begin_command(port, value);
  } else if (target.id == Register::kFault) {
    ports_[port].faults.clear(value);
  } else if (target.id == Register::kDevControl && (value & GBA_DEV_CONTROL_RESET) != 0) {
    reset_device();
  }
  // KICK needs no more work: the device is awake when it handles the write.
  return true;
}

bool Model::set_group_register(unsigned port, const RegisterRef& target, std::uint64_t value) {
  DeviceGroup& group = groups_[target.group];
  switch (target.id) {
    case Register::kMemberCount:
      return group.set_member_count(value);
    case Register::kMemberMask:
      return group.set_member_mask(target.index, value);
    case Register::kSequence:
      return group.set_sequence(value);
    case Register::kControl:
      return group.set_control(value);
    case Register::kTimeout:
      group.set_timeout(value);
      return true;
    case Register::kReleaseAddr:
      return group.set_release_address(target.index, value);
    case Register::kLocalReleaseAddr:
      return group.set_release_address(static_cast<unsigned>(ports_[port].member_of[target.group]), value);
    case Register::kNetworkAddr:
      return group.set_network_address(value);
    default:
      return false;
  }
}

void Model::reset_device() {  // uapi rule 23
  ports_.count(Counter::kResets);
  fatal_ = false;
  fail_all(GBA_ERROR_RESET);
  refresh_deadline();
}

void Model::reset_group(unsigned group) {
  if (groups_[group].allocated()) {
    groups_[group].reset();
    refresh_deadline();
  }
}

void Model::set_link(unsigned port, bool up) {  // uapi rule 34
  if (ports_[port].link_up == up) {
    return;
  }
  ports_[port].link_up = up;
  ports_.raise_error(port);
  for (unsigned group = 0; !up && group < groups_.size(); ++group) {
    if (const int member = member_of(port, group); member != kNoMember) {
      groups_[group].lose_link(static_cast<unsigned>(member));
    }
  }
  refresh_deadline();
}

void Model::break_down() {  // uapi rule 35
  fatal_ = true;
  for (unsigned port = 0; port < ports_.size(); ++port) {
    ports_.raise_error(port);
  }
}

unsigned Model::allocated_groups() const {
  return static_cast<unsigned>(
      std::count_if(groups_.begin(), groups_.end(), [](const DeviceGroup& group) { return group.allocated(); }));
}

unsigned Model::groups_held(unsigned port) const {
  return static_cast<unsigned>(
      std::count_if(groups_.begin(), groups_.end(), [port](const DeviceGroup& group) { return group.held_by(port); }));
}

void Model::shut_down() {
  fail_all(GBA_ERROR_LINK_DOWN);
}

void Model::fail_all(unsigned code) {
  for (auto& group : groups_) {
    if (group.allocated()) {
      group.fail(code, kNobody);
    }
  }
}

void Model::arrive(unsigned port, unsigned slot, std::uint64_t word, Time now) {
  if (fatal_ || !ports_[port].link_up) [[unlikely]] {  // it never comes here
    return;
  }
  const auto sequence = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_ARRIVAL_SEQUENCE, word));
  const auto member = static_cast<unsigned>(GBA_FIELD_GET(GBA_ARRIVAL_MEMBER, word));
  const bool well_formed =
      GBA_FIELD_GET(GBA_ARRIVAL_VALID, word) == 1 && GBA_FIELD_GET(GBA_ARRIVAL_RESERVED, word) == 0;
  if (!well_formed || ports_[port].member_of[slot] != static_cast<int>(member)) [[unlikely]] {  // uapi rule 10
    const unsigned kind = well_formed ? GBA_FAULT_NOT_JOINED : GBA_FAULT_BAD_ARRIVAL;
    ports_.reject(port, {.kind = kind, .group = slot, .member = member, .value = sequence});
    return;
  }
  DeviceGroup& group = groups_[slot];
  group.arrive(member, sequence, GBA_FIELD_GET(GBA_ARRIVAL_NOTIFY, word) != 0, now);
  next_deadline_ = std::min(next_deadline_, group.deadline());
}

void Model::bad_doorbell(unsigned port, std::uint64_t offset, std::uint64_t value) {
  ports_.reject(port, {.kind = GBA_FAULT_BAD_ARRIVAL, .value = value, .address = offset});
}

void Model::expire(Time now) {
  if (now >= next_command_) {
    end_commands(now);
  }
  if (fatal_) {
    next_deadline_ = next_command_;
    return;
  }
  for (auto& group : groups_) {
    if (group.deadline() <= now) {
      group.expire();
    }
  }
  refresh_deadline();
}

void Model::refresh_deadline() {
  next_deadline_ = next_command_;
  for (const auto& group : groups_) {
    next_deadline_ = std::min(next_deadline_, group.deadline());
  }
}

void Model::flag_store_failed(unsigned port, unsigned group, std::uint64_t address) {
  ports_.dma_fault(port, group, address);
  const int member = ports_[port].member_of[group];
  if (member != kNoMember) {
    groups_[group].fail(GBA_ERROR_DMA_FAULT, static_cast<unsigned>(member));
  }
}

}  // namespace fake_device
