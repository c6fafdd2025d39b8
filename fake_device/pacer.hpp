// SPDX-License-Identifier: Apache-2.0
// How the device rests between two scans that found nothing.
#pragma once

#include <algorithm>

#include "fake_device/clock.hpp"

namespace fake_device {

enum class Rest { kSpin, kYield, kSleep };

/// Pure; used by one thread.
class Pacer {
 public:
  /// Sleeps after `idle` without work. `processors`: that the device and its clients have.
  Pacer(Time idle, unsigned processors) : idle_(idle), processors_(processors) {}

  void worked(Time now) { last_work_ = now; }

  /// With nobody to wait for there is nothing to spin for. With more runnable processes than processors a spinning
  /// device keeps a member from arriving, so it gives way at once; otherwise it spins for a while, since giving way
  /// costs a system call on the way of the next arrival.
  [[nodiscard]] Rest rest(Time now, std::size_t members) const {
    if (members == 0 || now - last_work_ >= idle_) {
      return Rest::kSleep;
    }
    return members < processors_ && now - last_work_ < std::min(idle_, kSpin) ? Rest::kSpin : Rest::kYield;
  }

 private:
  static constexpr Time kSpin = 100 * kMicrosecond;
  Time idle_;
  unsigned processors_;
  Time last_work_ = 0;
};

}  // namespace fake_device
