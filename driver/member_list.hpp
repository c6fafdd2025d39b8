// SPDX-License-Identifier: Apache-2.0
// Sets of members, and how to write them down.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "uapi/gba_device.h"

namespace gba {

/// Member m is bit m % 64 of word m / 64.
using MemberMask = std::array<std::uint64_t, GBA_MASK_WORDS>;

/// "member 3", "members 0, 4-7 and 9"; long lists end in "and 31 more". "nobody" for the empty set.
std::string to_text(const MemberMask& members);

}  // namespace gba
