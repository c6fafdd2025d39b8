// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>

#include "driver/wait.hpp"

namespace gba::barrier {

/// When to try again something that fails: at once the first time, then after `first`, twice that, ... `longest`.
class Pace {
 public:
  Pace(std::chrono::nanoseconds first, std::chrono::nanoseconds longest)
      : first_(first), longest_(longest), wait_(first) {}

  [[nodiscard]] bool due() const { return Clock::now() >= next_; }
  [[nodiscard]] Clock::time_point next() const { return next_; }
  void failed() {
    next_ = Clock::now() + wait_;
    wait_ = std::min(2 * wait_, longest_);
  }
  void succeeded() { wait_ = first_; }

 private:
  std::chrono::nanoseconds first_, longest_, wait_;
  Clock::time_point next_{};
};

}  // namespace gba::barrier
