// SPDX-License-Identifier: Apache-2.0
// gba.h, implemented by a switch inside the test, which can lose members and itself whenever the test says so.
#pragma once

#include <cstdint>

namespace fake_gba {

/// Forgets all groups and whoever has opened it; `groups` are to be had, and nothing goes wrong.
void power_on(int groups);
/// From now on about one in `one_in` arrivals, and one in `one_in` releases, loses that member's way to the switch;
/// every other time without the switch noticing. The way is good again once the member opens the switch anew. 0: none
/// does.
void lose_members(std::uint32_t one_in);
/// The switch is gone, for all members. A member that has arrived may have been released or not.
void lose_device();
/// About one in `one_in` arrivals loses the device.
void lose_device_at_random(std::uint32_t one_in);
/// A lost device is there again, without its groups, the next time that somebody opens it. About one in `one_in` calls
/// to open it, to have a group or to join one fails. 0: none does.
void return_at_open(std::uint32_t failing_one_in);
/// Groups take at most so many members. 708 after power_on().
void limit_members(std::uint32_t most);
/// At most so many ports are open at a time; -1: any number, as after power_on().
void limit_ports(int most);
/// `member` cannot join any group; -1: all can.
void refuse_member(int member);

int groups_in_use();
std::uint64_t releases();

}  // namespace fake_gba
