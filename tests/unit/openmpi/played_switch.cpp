// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/openmpi/played_switch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>

struct gba_device {};

namespace openmpi_test {

PlayedSwitch::PlayedSwitch(std::uint32_t members, std::uint64_t sequence, int spin_time)
    : ports_(members), marked_(members), released_(sequence) {
  for (std::uint32_t member = 0; member < members; ++member) {
    ports_[member] = {this, member, Way::kGood, sequence, false, spin_time};
  }
}

void PlayedSwitch::fail() {
  error_ = true;
  for (auto& port : ports_) {
    port.error = port.error || port.way == Way::kGood;
  }
}

/// The other members get an error release if the switch learns that this one leaves.
void PlayedSwitch::leave(gba_group& port) {
  if (port.way != Way::kFails && port.way != Way::kSilent) {
    fail();
  }
}

void PlayedSwitch::lose(std::uint32_t member, Way way) {
  ports_[member].way = way;
}

void PlayedSwitch::die_in_release(std::uint64_t mask, Way way) {
  dies_ = true;
  reached_ = mask;
  death_ = way;
}

void PlayedSwitch::release() {
  ++released_;
  ++releases_;
  std::fill(marked_.begin(), marked_.end(), false);
  for (auto& port : ports_) {
    const bool reached = !dies_ || (reached_ >> port.member & 1) != 0;
    if (reached && port.way != Way::kFails && port.way != Way::kSilent) {
      port.flag = released_;
    }
    if (dies_) {
      port.way = death_;
    }
  }
}

void PlayedSwitch::arrive(gba_group& port, std::uint64_t sequence) {
  if (port.way == Way::kFails || port.way == Way::kSilent) {
    return;
  }
  if (error_) {
    port.error = true;
    return;
  }
  // uapi rules 9 to 13: the arrival carries 32 bits.
  const auto ahead =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) - static_cast<std::uint32_t>(released_));
  if (ahead > 1) {
    violation_ = "member " + std::to_string(port.member) + " rings " + std::to_string(sequence) + " when " +
                 std::to_string(released_) + " was released last";
    fail();
  } else if (ahead <= 0) {
    port.flag = released_;
  } else {
    marked_[port.member] = true;
    if (std::all_of(marked_.begin(), marked_.end(), [](bool marked) { return marked; })) {
      release();
    }
  }
}

int PlayedSwitch::look(gba_group& port, std::uint64_t sequence) {
  if (port.flag == sequence) {
    return 0;
  }
  if (port.error) {
    return -EPIPE;
  }
  switch (port.way) {
    case Way::kGood:
      return -EAGAIN;
    case Way::kFails:
      return -ENODEV;
    case Way::kCoughs:
      port.way = Way::kGood;
      return -EIO;
    case Way::kSilent:
      port.spin_time -= port.spin_time > 0 ? 1 : 0;
      return port.spin_time == 0 ? -ECOMM : -EAGAIN;
  }
  return -EINVAL;
}

PlayedMachine& machine() {
  static PlayedMachine instance;
  return instance;
}

}  // namespace openmpi_test

extern "C" {

const char* gba_error_text() {
  return "the played switch failed";
}

void gba_group_arrive(gba_group* group, std::uint64_t sequence) {
  ++group->owner->rung;
  group->owner->before_arrival(group->member, sequence);
  group->owner->arrive(*group, sequence);
}

int gba_group_test(gba_group* group, std::uint64_t sequence) {
  const int result = openmpi_test::PlayedSwitch::look(*group, sequence);
  group->owner->after_look(group->member);
  return result;
}

int gba_group_sleep(gba_group* group, std::uint64_t sequence, std::uint64_t /*max_ns*/) {
  group->owner->arrive(*group, sequence);
  return gba_group_test(group, sequence);
}

int gba_list(char (*addresses)[GBA_ADDRESS_SIZE], std::uint32_t room, std::uint32_t* count) {
  const auto& functions = openmpi_test::machine().functions;
  for (std::size_t i = 0; i < functions.size() && i < room; ++i) {
    std::snprintf(addresses[i], GBA_ADDRESS_SIZE, "%s", functions[i].c_str());
  }
  *count = static_cast<std::uint32_t>(functions.size());
  return 0;
}

int gba_open(const char* path, gba_device** out) {
  static gba_device device;
  auto& machine = openmpi_test::machine();
  machine.opened.emplace_back(path == nullptr ? "(default)" : path);
  if (machine.error != 0) {
    return machine.error;
  }
  *out = &device;
  return 0;
}

void gba_close(gba_device* device) {
  openmpi_test::machine().closed += device != nullptr ? 1 : 0;
}

int gba_device_check(gba_device* /*device*/) {
  return 0;
}

int gba_device_get_info(gba_device* /*device*/, gba_device_info* info) {
  *info = {};
  return 0;
}

int gba_group_alloc(gba_device* /*device*/, std::uint32_t count, std::uint64_t sequence, gba_group_handle* handle) {
  *handle = {.group = 0, .key = 1, .member_count = count, .reserved = 0, .sequence = sequence};
  return 0;
}

int gba_group_enable(gba_device* /*device*/, const gba_group_handle* /*handle*/) {
  return 0;
}

int gba_group_disable(gba_device* /*device*/, const gba_group_handle* /*handle*/) {
  return 0;
}

int gba_group_free(gba_device* /*device*/, const gba_group_handle* /*handle*/) {
  return 0;
}

int gba_group_join(gba_device* /*device*/, const gba_group_handle* /*handle*/, std::uint32_t member, gba_group** out) {
  *out = openmpi_test::machine().the_switch->port(member);
  return 0;
}

int gba_group_leave(gba_group* group) {
  group->owner->leave(*group);
  return 0;
}

int gba_group_missing(gba_group* /*group*/, std::uint64_t* /*mask*/) {
  return -ENODEV;
}
}
