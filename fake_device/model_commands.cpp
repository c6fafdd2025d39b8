// SPDX-License-Identifier: Apache-2.0
// The commands of the CMD register: uapi rules 4 and 5.
#include <algorithm>

#include "fake_device/model.hpp"

namespace fake_device {

// Uapi rule 4. A command takes effect when it is done: what it does is seen no earlier than its outcome.
void Model::begin_command(unsigned port, std::uint64_t command) {
  const Time due = ports_.command_done(port);
  if (due == 0) {
    run_command(port, command);
    return;
  }
  Port& state = ports_[port];
  state.cmd_status = GBA_FIELD_PUT(GBA_CMD_STATUS_BUSY, 1);
  state.cmd_result = 0;
  state.command = command;
  state.command_due = due;
  next_command_ = std::min(next_command_, due);
}

void Model::end_commands(Time now) {
  next_command_ = kNever;
  for (unsigned port = 0; port < ports_.size(); ++port) {
    Port& state = ports_[port];
    if (state.command_due <= now) {
      state.command_due = kNever;
      run_command(port, state.command);
    }
    next_command_ = std::min(next_command_, state.command_due);
  }
}

void Model::run_command(unsigned port, std::uint64_t command) {
  const auto group = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_GROUP, command));
  const auto member = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_MEMBER, command));
  const auto key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_KEY, command));
  std::uint64_t error = GBA_CMD_ERROR_OPCODE;
  std::uint64_t result = 0;
  switch (GBA_FIELD_GET(GBA_CMD_OPCODE, command)) {
    case GBA_CMD_ALLOC:
      error = allocate(port, result);
      break;
    case GBA_CMD_FREE:
      error = free_group(port, group);
      break;
    case GBA_CMD_JOIN:
      error = join(port, group, member, key);
      break;
    case GBA_CMD_LEAVE:
      error = leave(port, group);
      break;
    case GBA_CMD_RECLAIM:
      error = reclaim(port, group);
      break;
    default:
      break;
  }
  ports_[port].cmd_status = GBA_FIELD_PUT(GBA_CMD_STATUS_ERROR, error);
  ports_[port].cmd_result = result;
}

std::uint64_t Model::allocate(unsigned port, std::uint64_t& result) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [](const DeviceGroup& g) { return !g.allocated(); });
  if (found == groups_.end()) {
    return GBA_CMD_ERROR_NO_FREE_GROUP;
  }
  if (!ports_[port].privileged && groups_held(port) >= group_limit_) {  // uapi rule 37
    return GBA_CMD_ERROR_GROUP_LIMIT;
  }
  const auto group = static_cast<unsigned>(found - groups_.begin());
  found->allocate(port, std::max(std::uint32_t{1}, ports_.random_key()), first_sequence_);
  for (unsigned other = 0; other < ports_.size(); ++other) {
    ports_[other].wrong_keys[group] = 0;
  }
  result = GBA_FIELD_PUT(GBA_CMD_RESULT_GROUP, group) | GBA_FIELD_PUT(GBA_CMD_RESULT_KEY, found->key());
  return GBA_CMD_OK;
}

std::uint64_t Model::free_group(unsigned port, unsigned group) {
  if (!known(group)) {
    return GBA_CMD_ERROR_GROUP;
  }
  if (!groups_[group].owned_by(port)) {
    return GBA_CMD_ERROR_NOT_OWNER;
  }
  groups_[group].free();
  return GBA_CMD_OK;
}

std::uint64_t Model::reclaim(unsigned port, unsigned group) {
  if (!known(group)) {
    return GBA_CMD_ERROR_GROUP;
  }
  if (!ports_[port].privileged || !groups_[group].orphaned()) {
    return GBA_CMD_ERROR_NOT_PRIVILEGED;
  }
  groups_[group].free();
  return GBA_CMD_OK;
}

std::uint64_t Model::join(unsigned port, unsigned group, unsigned member, std::uint32_t key) {
  if (!known(group)) {
    return GBA_CMD_ERROR_GROUP;
  }
  DeviceGroup& target = groups_[group];
  if (ports_[port].wrong_keys[group] >= GBA_MAX_WRONG_KEYS) {
    return GBA_CMD_ERROR_LOCKED_OUT;
  }
  if (key != target.key()) {
    return wrong_key(port, group, member, key);
  }
  if (ports_[port].member_of[group] != kNoMember) {
    return GBA_CMD_ERROR_ALREADY_JOINED;
  }
  if (!target.has_place(member)) {
    return GBA_CMD_ERROR_MEMBER;
  }
  if (target.taken(member)) {
    return GBA_CMD_ERROR_MEMBER_TAKEN;
  }
  target.join(port, member);
  return GBA_CMD_OK;
}

std::uint64_t Model::wrong_key(unsigned port, unsigned group, unsigned member, std::uint32_t key) {
  ++ports_[port].wrong_keys[group];
  ports_.fault(port, {.kind = GBA_FAULT_KEY, .group = group, .member = member, .value = key});
  return GBA_CMD_ERROR_KEY;
}

std::uint64_t Model::leave(unsigned port, unsigned group) {
  if (!known(group)) {
    return GBA_CMD_ERROR_GROUP;
  }
  const int member = ports_[port].member_of[group];
  if (member == kNoMember) {
    return GBA_CMD_ERROR_NOT_JOINED;
  }
  groups_[group].leave(static_cast<unsigned>(member));
  return GBA_CMD_OK;
}

}  // namespace fake_device
