// SPDX-License-Identifier: Apache-2.0
// Does a device raise more interrupts than it was asked for?
#pragma once

#include <algorithm>
#include <cstdint>

#include "driver/wait.hpp"

namespace gba {

/// Of one membership. A barrier that is asked about raises one interrupt; an arrival that was repeated while the answer
/// was under way raises another (uapi rules 12 and 15). What comes beyond that is unasked for, and a storm where there
/// is much of it: each wakes a waiter for nothing.
class InterruptBudget {
 public:
  static constexpr std::uint64_t kPerBarrier = 4;
  static constexpr std::uint64_t kStorm = 64;  // unasked for, within kWindow
  static constexpr std::chrono::seconds kWindow{1};

  /// An arrival at `sequence` asks for an interrupt.
  void ask(std::uint64_t sequence) {
    if (sequence == asked_for_) return;
    asked_for_ = sequence;
    due_ += kPerBarrier;
  }

  /// `count` have come since the last call. True: they are a storm.
  bool take(std::uint64_t count, Clock::time_point now) {
    if (now - window_ > kWindow) {
      window_ = now;
      unasked_ = 0;
    }
    const std::uint64_t expected = std::min(count, due_);
    unasked_ += count - expected;
    // All that were raised for earlier barriers have come now.
    due_ = std::min(due_ - expected, kPerBarrier);
    return unasked_ > kStorm;
  }

 private:
  std::uint64_t asked_for_ = 0;
  std::uint64_t due_ = 0;
  std::uint64_t unasked_ = 0;  // since window_
  Clock::time_point window_{};
};

}  // namespace gba
