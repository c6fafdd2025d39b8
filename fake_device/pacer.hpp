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

  void worked(Time now) {
    last_work_ = now;
    yields_ = 0;
  }

  /// With nobody to wait for there is nothing to spin for. With more runnable processes than processors a spinning
  /// device keeps a member from arriving, so it gives way at once; otherwise it spins for a while, since giving way
  /// costs a system call on the way of the next arrival. It gives way a few times before it sleeps: of the time that
  /// others ran meanwhile it knows nothing, and waking it costs them more.
  Rest rest(Time now, std::size_t members) {
    const Time quiet = now - last_work_;
    if (members == 0 || (quiet >= idle_ && yields_ >= kYields)) {
      return Rest::kSleep;
    }
    if (members < processors_ && quiet < std::min(idle_, kSpin)) {
      return Rest::kSpin;
    }
    ++yields_;
    return Rest::kYield;
  }

 private:
  static constexpr Time kSpin = 100 * kMicrosecond;
  static constexpr unsigned kYields = 32;
  Time idle_;
  unsigned processors_;
  Time last_work_ = 0;
  unsigned yields_ = 0;
};

}  // namespace fake_device
