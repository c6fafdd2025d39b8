// SPDX-License-Identifier: Apache-2.0
// The specification of a group, as short as possible and with 64-bit sequences. The model is compared with it.
#pragma once

#include <bitset>
#include <cstdint>
#include <vector>

#include "tests/unit/fake_device/model_fixture.hpp"

namespace fake_device_test {

using MemberBits = std::bitset<GBA_MAX_MEMBERS>;

/// How a group is set up. Port m joins as member m.
struct Setup {
  unsigned members;
  std::uint64_t start;     // SEQUENCE
  unsigned owner;          // a port: that of a member, or `members`, a port without a membership
  bool armed = true;       // ARM
  bool interrupts = true;  // IRQ_EN
};

/// The counters since the group was set up.
struct Counts {
  std::uint64_t arrivals = 0, releases = 0, stale = 0, rejected = 0, timeouts = 0, resets = 0, errors = 0;
  bool operator==(const Counts&) const = default;
};

/// A barrier group that was enabled when all its members had joined. Has value semantics. `events` holds the stores and
/// interrupts of the last call, in any order except that each interrupt follows its store.
struct Specification {
  explicit Specification(const Setup& as) : setup(as), released(as.start), flags(as.members, 0) {
    for (unsigned member = 0; member < as.members; ++member) {
      joined.set(member);
    }
  }

  // ---- The barrier: no member sees k released before all have arrived at k
  void arrive(unsigned member, std::uint64_t k, bool notify) {
    const bool answered = code != 0 || k <= released;
    if (!joined[member] || (!answered && !enabled)) {
      reject(member);
    } else if (answered) {
      ++counts.arrivals;
      counts.stale += code == 0 ? 1 : 0;
      answer(member, notify);
    } else if (k > released + 1) {
      reject(member);
      asked[member] = asked[member] || notify;
      fail(GBA_ERROR_PROTOCOL, member);
    } else {
      ++counts.arrivals;
      arrived.set(member);
      asked[member] = asked[member] || notify;
      if (arrived.count() == setup.members) {
        release();
      }
    }
  }
  void release() {
    ++counts.releases;
    ++released;
    arrived.reset();
    enabled = setup.armed;
    tell_all_members();
  }
  void fail(unsigned why, unsigned who) {
    if (code == 0) {
      ++counts.errors;
      code = why;
      culprit = who;
      enabled = false;
      tell_all_members();
      for_each(joined, [&](unsigned member) { events.push_back(raise(member, kErrorVector)); });
    }
  }

  // ---- Other events
  void leave(unsigned member) {
    joined.reset(member);
    asked.reset(member);
    if (enabled) {
      fail(GBA_ERROR_LEAVE, member);
    }
    freed = orphaned && joined.none();
  }
  void lose(unsigned port) {
    if (port < setup.members && joined[port]) {
      leave(port);
    }
    if (port == setup.owner && joined.any()) {
      orphaned = true;
      fail(GBA_ERROR_LEAVE, fake_device::kNobody);
    } else if (port == setup.owner) {
      freed = true;
    }
  }
  void free() {
    if (joined.any()) {
      fail(GBA_ERROR_LEAVE, fake_device::kNobody);
    }
    joined.reset();
    freed = true;
  }
  void reset() {
    ++counts.resets;
    fail(GBA_ERROR_RESET, fake_device::kNobody);
  }
  void expire() {
    unsigned missing = 0;
    while (arrived[missing]) {
      ++missing;
    }
    ++counts.timeouts;
    fault(setup.owner);
    fail(GBA_ERROR_TIMEOUT, missing);
  }
  void disable() {
    enabled = false;
    if (code == 0) {
      arrived.reset();
    }
  }

  // ---- Its output: the status, flags and interrupts
  [[nodiscard]] std::uint64_t word() const { return code != 0 ? error_word(code, released) : released; }
  [[nodiscard]] std::uint64_t status() const {
    if (code != 0 || arrived.any()) {
      return code != 0 ? GBA_STATUS_ERROR : GBA_STATUS_ACTIVE;
    }
    return (enabled ? GBA_STATUS_READY : 0) | (counts.releases != 0 ? GBA_STATUS_COMPLETE : 0);
  }
  void tell(unsigned member) {
    flags[member] = word();
    events.push_back(store(member, 0, word()));
  }
  void answer(unsigned member, bool notify) {
    tell(member);
    if (notify) {
      interrupt(member);
    }
  }
  void tell_all_members() {
    for_each(joined, [&](unsigned member) { tell(member); });
    for_each(asked, [&](unsigned member) { interrupt(member); });
    asked.reset();
  }
  void interrupt(unsigned member) {
    if (setup.interrupts) {
      events.push_back(raise(member, 0));
    }
  }
  void fault(unsigned port) { events.push_back(raise(port, kErrorVector)); }
  void reject(unsigned member) {
    ++counts.rejected;
    fault(member);
  }
  template <typename Visit>
  void for_each(const MemberBits& bits, Visit visit) const {
    for (auto member = bits._Find_first(); member < setup.members; member = bits._Find_next(member)) {
      visit(static_cast<unsigned>(member));
    }
  }

  Setup setup;
  std::uint64_t released;
  bool enabled = true;
  MemberBits joined;
  MemberBits arrived;
  MemberBits asked;  // members that have asked for an interrupt and not got it yet
  unsigned code = 0;
  unsigned culprit = 0;
  bool orphaned = false;
  bool freed = false;
  Counts counts;
  std::vector<std::uint64_t> flags;
  std::vector<Event> events;
};

}  // namespace fake_device_test
