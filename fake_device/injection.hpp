// SPDX-License-Identifier: Apache-2.0
// A fault that the operator or a client asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fake_device/effects.hpp"
#include "fake_device/result.hpp"
#include "uapi/gba_debug.h"

namespace fake_device {

inline constexpr std::uint64_t kAlways = GBA_DEBUG_ANY;

/// What the debug region's registers say: uapi/gba_debug.h.
struct Injection {
  unsigned kind = 0;  // GBA_INJECT_*
  std::optional<std::uint64_t> group = std::nullopt;
  std::optional<std::uint64_t> member = std::nullopt;
  std::optional<std::uint64_t> port = std::nullopt;
  std::uint64_t count = 1;
  std::uint64_t after = 0;
  Time time = 0;
  Time spread = 0;
  std::uint64_t value = 0;
};

/// True for those that wait for an occasion.
[[nodiscard]] bool waits_for_occasion(unsigned kind);

/// Fails with what is wrong with it on a device of this size.
Result<void> check(const Injection& injection, const Dimensions& dimensions);

/// A fault from the command line, and how long after the start it happens.
struct TimedInjection {
  Injection injection;
  Time at = 0;
};

/// KIND[:KEY=VALUE[,KEY=VALUE...]], such as drop-release:group=3,member=7,count=1. Does not know the device's size.
Result<TimedInjection> parse_injection(const std::string& text);

/// "drop-release of group 3, member 7", for the log.
std::string describe(const Injection& injection);

}  // namespace fake_device
