// SPDX-License-Identifier: Apache-2.0
// gba.h, implemented by a simulated switch that can fail, or lose members, when the test says so.
#pragma once

#include <cstdint>
#include <thread>

namespace fake_gba {

/// Starts a new switch with `groups` free groups, no open ports and no faults.
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
/// Groups have up to `most` members; 708 after power_on().
void limit_members(std::uint32_t most);
/// Up to `most` ports can be open at a time; -1: any number, as after power_on().
void limit_ports(int most);
/// `member` cannot join any group; -1: all members can.
void refuse_member(int member);

/// How often a thread has left a group, since power_on().
int leaves_by(std::thread::id thread);

int groups_in_use();
std::uint64_t releases();

}  // namespace fake_gba
