// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "fake_device/effects.hpp"

namespace fake_device {

/// Now, on the steady clock.
inline Time read_clock() {
  return static_cast<Time>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

inline constexpr Time kMicrosecond = 1000;
inline constexpr Time kSecond = 1'000'000'000;

}  // namespace fake_device
