// SPDX-License-Identifier: Apache-2.0
// The state of a group as its registers show it, and sets of members.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "driver/device.hpp"
#include "gba/gba.h"
#include "uapi/gba_device.h"

namespace gba {

/// Member m is bit m % 64 of word m / 64.
using MemberMask = std::array<std::uint64_t, GBA_MASK_WORDS>;

/// "member 3", "members 0, 4-7 and 9"; long lists end in "and 31 more". "nobody" for the empty set.
std::string to_text(const MemberMask& members);

/// Errors: those of gba_group_get_status.
Result<gba_group_status> read_group_status(Device& device, std::uint32_t group);

}  // namespace gba
