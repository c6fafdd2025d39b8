// SPDX-License-Identifier: Apache-2.0
// A model of a device whose effects are recorded.
#pragma once

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "fake_device/model.hpp"
#include "uapi/gba_regs.h"

namespace fake_device_test {

using fake_device::Effects;
using fake_device::Model;
using fake_device::Time;

struct Event {
  enum Kind { kStore, kRaise } kind;
  unsigned port;
  unsigned target;     // the group of a store, the vector of an interrupt
  std::uint64_t word;  // the value of a store
  bool operator==(const Event&) const = default;
};
inline void PrintTo(const Event& event, std::ostream* out) {
  *out << (event.kind == Event::kStore ? "store" : "raise") << " port " << event.port << " target " << event.target
       << " word 0x" << std::hex << event.word << std::dec;
}

inline Event store(unsigned port, unsigned group, std::uint64_t word) {
  return {Event::kStore, port, group, word};
}
inline Event raise(unsigned port, unsigned vector) {
  return {Event::kRaise, port, vector, 0};
}
inline std::uint64_t error_word(unsigned code, std::uint64_t sequence) {
  return std::uint64_t{1} << 63 | std::uint64_t{code} << 56 | sequence;
}

class RecordingEffects final : public Effects {
 public:
  bool store_flag(unsigned port, unsigned group, std::uint64_t address, std::uint64_t word) override {
    if (broken.contains(port)) {
      return false;
    }
    events.push_back(store(port, group, word));
    flags[{port, group}] = word;
    addresses[{port, group}] = address;
    return true;
  }
  void raise(unsigned port, unsigned vector) override { events.push_back(fake_device_test::raise(port, vector)); }
  void joined(unsigned port, unsigned group) override {
    members.insert({port, group});
    flags[{port, group}] = 0;
  }
  void opened(unsigned group, bool open) override {
    EXPECT_EQ(open_groups.contains(group), !open) << "each change must be reported once";
    open ? static_cast<void>(open_groups.insert(group)) : static_cast<void>(open_groups.erase(group));
  }
  void left(unsigned port, unsigned group) override { members.erase({port, group}); }
  Time command_done(unsigned port) override { return port == slow_port ? command_end : 0; }
  std::uint32_t random_key() override { return next_key++; }

  std::vector<Event> take() { return std::exchange(events, {}); }

  std::vector<Event> events;
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> flags;
  std::map<std::pair<unsigned, unsigned>, std::uint64_t> addresses;
  std::set<std::pair<unsigned, unsigned>> members;
  std::set<unsigned> open_groups;
  std::set<unsigned> broken;  // ports whose memory cannot be written
  std::uint32_t next_key = 100;
  unsigned slow_port = 0;
  Time command_end = 0;  // of the commands of slow_port
};

inline constexpr unsigned kErrorVector = GBA_MSIX_ERROR_VECTOR;

/// A complete device: 32 groups of 708 members, `ports` ports, all connected, and the privileged port.
class Device {
 public:
  explicit Device(unsigned ports = 8)
      : model({.groups = GBA_MAX_GROUPS, .members = GBA_MAX_MEMBERS, .ports = ports}, fake_device::gba_layout(),
              effects) {
    for (unsigned port = 0; port <= ports; ++port) {
      model.connect(port);
    }
  }

  std::uint64_t read(unsigned port, std::uint64_t offset, unsigned size = 8) { return model.read(port, offset, size); }
  void write(unsigned port, std::uint64_t offset, std::uint64_t value, unsigned size = 8) {
    model.write(port, offset, size, value);
  }
  std::uint64_t group_read(unsigned group, std::uint64_t offset, unsigned size = 8) {
    return read(0, GBA_GROUP_BASE(group) + offset, size);
  }
  void group_write(unsigned port, unsigned group, std::uint64_t offset, std::uint64_t value, unsigned size = 8) {
    write(port, GBA_GROUP_BASE(group) + offset, value, size);
  }

  unsigned command(unsigned port, unsigned opcode, unsigned group = 0, unsigned member = 0, std::uint32_t key = 0) {
    write(port, GBA_REG_CMD,
          GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
              GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key));
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, read(port, GBA_REG_CMD_STATUS)));
  }
  unsigned alloc(unsigned port) {
    EXPECT_EQ(alloc_maybe(port), unsigned{GBA_CMD_OK});
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, read(port, GBA_REG_CMD_RESULT)));
  }
  unsigned alloc_maybe(unsigned port) {
    const unsigned error = command(port, GBA_CMD_ALLOC);
    const auto result = read(port, GBA_REG_CMD_RESULT);
    const auto group = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result));
    if (error == GBA_CMD_OK) {
      keys[group] = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result));
    }
    return error;
  }
  void configure(unsigned port, unsigned group, unsigned members) {
    group_write(port, group, GBA_GROUP_MEMBER_COUNT, members, 4);
    for (unsigned word = 0; word * 64 < members; ++word) {
      const unsigned bits = members - word * 64;
      group_write(port, group, GBA_GROUP_MEMBER_MASK + 8 * word,
                  bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
    }
  }
  void control(unsigned port, unsigned group, std::uint64_t value) {
    group_write(port, group, GBA_GROUP_CONTROL, value);
  }
  unsigned join(unsigned port, unsigned group, unsigned member) {
    return command(port, GBA_CMD_JOIN, group, member, keys[group]);
  }
  /// Makes a group of port 0 with ports 0..members-1 joined as those members, enabled, armed, with interrupts.
  unsigned barrier(unsigned members, std::uint64_t sequence = 0) {
    const unsigned group = alloc(0);
    configure(0, group, members);
    group_write(0, group, GBA_GROUP_SEQUENCE, sequence);
    control(0, group, kRunning);
    for (unsigned member = 0; member < members; ++member) {
      EXPECT_EQ(join(member, group, member), unsigned{GBA_CMD_OK});
    }
    effects.take();
    return group;
  }

  static std::uint64_t word(unsigned member, std::uint64_t sequence, bool notify = false) {
    return GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) |
           GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1) | GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, notify ? 1 : 0);
  }
  /// Port `member` arrives as that member.
  void arrive(unsigned group, unsigned member, std::uint64_t sequence, bool notify = false, Time now = 0) {
    model.arrive(member, group, word(member, sequence, notify), now);
  }

  std::uint64_t status(unsigned group) { return group_read(group, GBA_GROUP_STATUS); }
  std::uint64_t sequence(unsigned group) { return group_read(group, GBA_GROUP_SEQUENCE); }
  unsigned error(unsigned group) {
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_ERROR_CODE_CODE, group_read(group, GBA_GROUP_ERROR_CODE)));
  }
  unsigned error_member(unsigned group) {
    return static_cast<unsigned>(GBA_FIELD_GET(GBA_ERROR_CODE_MEMBER, group_read(group, GBA_GROUP_ERROR_CODE)));
  }
  std::uint64_t fault(unsigned port) { return read(port, GBA_REG_FAULT); }
  std::uint64_t counter(std::uint64_t offset) { return read(0, offset); }

  static constexpr std::uint64_t kRunning = GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN;

  RecordingEffects effects;
  Model model;
  std::map<unsigned, std::uint32_t> keys;
};

}  // namespace fake_device_test
