// SPDX-License-Identifier: Apache-2.0
// gba.h, implemented by a switch inside the test, which can lose members and itself whenever the test says so.
#pragma once

#include <cstdint>

namespace fake_gba {

/// Forgets all groups; `groups` are to be had, and nothing goes wrong.
void power_on(int groups);
/// From now on about one in `one_in` arrivals, and one in `one_in` releases, loses that member's way to the switch, for
/// good; every other time without the switch noticing. 0: none does.
void lose_members(std::uint32_t one_in);
/// The switch is gone: for all members and for good. A member that has arrived may have been released or not.
void lose_device();
/// About one in `one_in` arrivals loses the device.
void lose_device_at_random(std::uint32_t one_in);
/// `member` cannot join any group.
void refuse_member(std::uint32_t member);

int groups_in_use();
std::uint64_t releases();

}  // namespace fake_gba
