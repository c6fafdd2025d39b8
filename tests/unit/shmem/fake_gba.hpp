// SPDX-License-Identifier: Apache-2.0
// gba.h, implemented by a simulated switch that can fail, or lose members, when the test says so: at random, for tests
// whose members are threads, or at a given step of a test that plays all members in one thread (`Play`).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace fake_gba {

/// The state of a member's connection to the switch.
enum class Way {
  kGood,
  kFails,   // no arrival or release passes; the next look reports the loss
  kSilent,  // the same, but the loss is reported late: many looks return -EAGAIN before -ECOMM
  kCoughs,  // one look fails although the connection works
};

/// Starts a new switch with `groups` free groups and no faults.
void power_on(int groups);
/// From now on about one in `one_in` arrivals and releases breaks that member's connection to the switch, in half of
/// the cases without the switch noticing. The connection works again once the member has reopened the switch. 0: never.
void lose_members(std::uint32_t one_in);
/// The switch is lost for all members. A member that has arrived may have been released or not.
void lose_device();
/// About one in `one_in` arrivals loses the device.
void lose_device_at_random(std::uint32_t one_in);
/// A lost device is back, without its groups, the next time that a member opens it. About one in `failing_one_in` calls
/// to open it, to allocate a group or to join one fails. 0: none fails.
void return_at_open(std::uint32_t failing_one_in);
/// The switch loses its memory, and is back at once, in the next such call: connections opened before are lost, and
/// only their use shows it.
enum class Call { kNone, kAllocate, kJoin };
void restart_in(Call call);
/// Groups have up to `most` members; 708 after power_on().
void limit_members(std::uint32_t most);
/// Up to `most` ports can be open at a time; -1: any number, as after power_on().
void limit_ports(int most);
/// `member` cannot join any group; -1: all members can.
void refuse_member(int member);

/// For members that one thread plays, step by step: no call sleeps.
struct Play {
  int silent_looks;  // until a silent loss is reported
  /// Called before an arrival takes effect, and after a look, before it returns.
  std::function<void(std::uint32_t member, std::uint64_t sequence)> before_arrival;
  std::function<void(std::uint32_t member)> after_look;
};
/// Until the next power_on(). The next three concern all groups; there is one at most.
void play(const Play& play);
/// The group enters the error state, if it is still in use.
void fail_group();
void lose_member(std::uint32_t member, Way way);
/// The next release reaches the members of `mask` only. After it the switch is lost for all members, with `way`.
void die_in_release(std::uint64_t mask, Way way);
/// The number of arrivals, without repeats.
std::uint64_t arrivals();
/// Why a member's arrival was a protocol error, or "".
std::string violation();

/// The addresses that gba_list() reports.
void list_functions(const std::vector<std::string>& addresses);
/// gba_open() returns `error`, unless it is 0.
void refuse_opening(int error);
/// The paths of all calls of gba_open() since power_on(); "(default)": NULL.
std::vector<std::string> opened();
int open_ports();

/// How often a thread has left a group, since power_on().
int leaves_by(std::thread::id thread);

int groups_in_use();
std::uint64_t releases();

}  // namespace fake_gba
