// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/fake_device/played_group.hpp"

#include <algorithm>
#include <array>
#include <ostream>
#include <tuple>

namespace fake_device_test {
namespace {

constexpr unsigned kGroup = 0;
constexpr Time kTimeout = 1000;

std::vector<Event> sorted(std::vector<Event> events) {
  std::sort(events.begin(), events.end(), [](const Event& left, const Event& right) {
    return std::tie(left.kind, left.port, left.target, left.word) <
           std::tie(right.kind, right.port, right.target, right.word);
  });
  return events;
}

/// uapi rule 15: a member that an interrupt wakes finds the answer in its flag.
bool every_raise_follows_its_store(const std::vector<Event>& events) {
  MemberBits raised;
  for (const auto& event : events) {
    if (event.kind == Event::kRaise && event.target == kGroup) {
      raised.set(event.port);
    } else if (event.kind == Event::kStore && raised[event.port]) {
      return false;
    }
  }
  return true;
}

}  // namespace

void PrintTo(const Step& step, std::ostream* out) {
  static constexpr std::array kNames{"arrive",  "leave",  "disconnect", "reset",  "expire",
                                     "disable", "enable", "free",       "reclaim"};
  *out << kNames[step.action];
  if (step.action <= Step::kDisconnect) {
    *out << ' ' << step.who;
  }
  if (step.action == Step::kArrive) {
    *out << " +" << step.sequence << (step.notify ? " notify" : "");
  }
}

PlayedGroup::PlayedGroup(Device& device, const Setup& setup) : device_(device), setup_(setup), spec_(setup) {
  for (unsigned port = 0; port < device.model.privileged_port(); ++port) {
    device.model.disconnect(port);
    device.model.connect(port);
  }
  EXPECT_EQ(device.alloc(setup.owner), kGroup) << "group 0 is still allocated";
  device.configure(setup.owner, kGroup, setup.members);
  device.group_write(setup.owner, kGroup, GBA_GROUP_SEQUENCE, setup.start);
  device.group_write(setup.owner, kGroup, GBA_GROUP_TIMEOUT, kTimeout);
  device.control(setup.owner, kGroup, control() | GBA_CONTROL_ENABLE);
  for (unsigned member = 0; member < setup.members; ++member) {
    EXPECT_EQ(device.join(member, kGroup, member), unsigned{GBA_CMD_OK});
  }
  device.effects.take();
  before_ = counted();
}

std::uint64_t PlayedGroup::control() const {
  return (setup_.armed ? GBA_CONTROL_ARM : 0) | (setup_.interrupts ? GBA_CONTROL_IRQ_EN : 0);
}

void PlayedGroup::step(const Step& step) {
  spec_.events.clear();
  play(step);
  compare_events();
}

void PlayedGroup::play(const Step& step) {
  const unsigned who = step.who;
  switch (step.action) {
    case Step::kArrive:
      spec_.arrive(who, setup_.start + step.sequence, step.notify);
      device_.arrive(kGroup, who, setup_.start + step.sequence, step.notify);
      break;
    case Step::kLeave:
      spec_.leave(who);
      device_.command(who, GBA_CMD_LEAVE, kGroup);
      break;
    case Step::kDisconnect:
      spec_.lose(who);
      device_.model.disconnect(who);
      device_.model.connect(who);
      break;
    case Step::kReset:
      spec_.reset();
      device_.control(setup_.owner, kGroup, control() | GBA_CONTROL_ENABLE | GBA_CONTROL_RESET);
      break;
    case Step::kExpire:
      spec_.expire();
      device_.model.expire(kTimeout);
      break;
    case Step::kDisable:
      spec_.disable();
      device_.control(setup_.owner, kGroup, control());
      break;
    case Step::kEnable:
      spec_.enabled = true;
      device_.control(setup_.owner, kGroup, control() | GBA_CONTROL_ENABLE);
      break;
    case Step::kFree:
      spec_.free();
      device_.command(setup_.owner, GBA_CMD_FREE, kGroup);
      break;
    case Step::kReclaim:
      spec_.free();
      device_.command(device_.model.privileged_port(), GBA_CMD_RECLAIM, kGroup);
      break;
  }
}

void PlayedGroup::compare_events() {
  const auto told = device_.effects.take();
  if (told.empty() && spec_.events.empty()) {
    return;
  }
  EXPECT_EQ(sorted(told), sorted(spec_.events));
  EXPECT_TRUE(every_raise_follows_its_store(told)) << ::testing::PrintToString(told);
  // Clears the faults: a fault raises an interrupt only if its kind is not latched yet.
  for (const auto& event : told) {
    if (event.kind == Event::kRaise && event.target == kErrorVector) {
      device_.write(event.port, GBA_REG_FAULT, ~std::uint64_t{0});
    }
  }
}

void PlayedGroup::check() {
  check_registers();
  check_counters();
  spec_.for_each(spec_.joined, [&](unsigned member) {
    const auto flag = device_.effects.flags[{member, kGroup}];
    EXPECT_EQ(flag, spec_.flags[member]) << "member " << member;
  });
  for (unsigned member = 0; member < setup_.members; ++member) {
    EXPECT_EQ(device_.model.is_member(member, kGroup), spec_.joined[member]) << "member " << member;
  }
  check_timer();
}

/// uapi rule 22: expire() before the deadline must do nothing.
void PlayedGroup::check_timer() {
  const bool open = spec_.code == 0 && spec_.arrived.any();
  device_.model.expire(open ? kTimeout - 1 : kTimeout);
  EXPECT_TRUE(device_.effects.take().empty());
  EXPECT_EQ(device_.model.next_deadline(), open ? kTimeout : fake_device::kNever);
}

void PlayedGroup::check_registers() {
  if (spec_.freed) {
    EXPECT_EQ(device_.group_read(kGroup, GBA_GROUP_MEMBER_COUNT, 4), 0U) << "a free group reads 0";
    return;
  }
  EXPECT_EQ(device_.sequence(kGroup), spec_.released);
  EXPECT_EQ(device_.status(kGroup), spec_.status());
  EXPECT_EQ(device_.group_read(kGroup, GBA_GROUP_CONTROL), control() | (spec_.enabled ? GBA_CONTROL_ENABLE : 0));
  EXPECT_EQ(device_.error(kGroup), spec_.code);
  EXPECT_EQ(device_.error_member(kGroup), spec_.culprit);
  EXPECT_EQ(device_.group_read(kGroup, GBA_GROUP_ARRIVAL_COUNT, 4), spec_.arrived.count());
  const MemberBits low_word(~std::uint64_t{0});
  for (unsigned word = 0; word < GBA_MASK_WORDS; ++word) {
    EXPECT_EQ(device_.group_read(kGroup, GBA_GROUP_ARRIVED_MASK + std::uint64_t{8} * word),
              (spec_.arrived >> (std::size_t{64} * word) & low_word).to_ullong());
  }
}

Counts PlayedGroup::counted() const {
  return {.arrivals = device_.counter(GBA_REG_COUNTER_ARRIVALS),
          .releases = device_.counter(GBA_REG_COUNTER_RELEASES),
          .stale = device_.counter(GBA_REG_COUNTER_STALE),
          .rejected = device_.counter(GBA_REG_COUNTER_REJECTED),
          .timeouts = device_.counter(GBA_REG_COUNTER_TIMEOUTS),
          .resets = device_.counter(GBA_REG_COUNTER_RESETS),
          .errors = device_.counter(GBA_REG_COUNTER_ERRORS)};
}

void PlayedGroup::check_counters() {
  const auto now = counted();
  EXPECT_EQ(now.arrivals - before_.arrivals, spec_.counts.arrivals);
  EXPECT_EQ(now.releases - before_.releases, spec_.counts.releases);
  EXPECT_EQ(now.stale - before_.stale, spec_.counts.stale);
  EXPECT_EQ(now.rejected - before_.rejected, spec_.counts.rejected);
  EXPECT_EQ(now.timeouts - before_.timeouts, spec_.counts.timeouts);
  EXPECT_EQ(now.resets - before_.resets, spec_.counts.resets);
  EXPECT_EQ(now.errors - before_.errors, spec_.counts.errors);
}

}  // namespace fake_device_test
