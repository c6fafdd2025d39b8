// SPDX-License-Identifier: Apache-2.0
// Waiting: deadlines, and how long to stay on the processor before sleeping.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace gba {

using Clock = std::chrono::steady_clock;

/// A moment after which a wait ends, or never.
class Deadline {
 public:
  static Deadline never() { return Deadline(Clock::time_point::max()); }
  /// `limit` from now; so far away that the clock cannot say it is never.
  static Deadline after(std::chrono::nanoseconds limit) {
    const auto now = Clock::now();
    return Deadline(limit < Clock::time_point::max() - now ? now + limit : Clock::time_point::max());
  }
  static Deadline after_ns(std::uint64_t limit) {
    constexpr auto kLongest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    return limit >= kLongest ? never() : after(std::chrono::nanoseconds(static_cast<std::int64_t>(limit)));
  }

  [[nodiscard]] bool passed() const { return end_ != Clock::time_point::max() && Clock::now() >= end_; }
  /// Not negative; at most `most`.
  [[nodiscard]] std::chrono::nanoseconds left(std::chrono::nanoseconds most) const {
    if (end_ == Clock::time_point::max()) {
      return most;
    }
    return std::clamp<std::chrono::nanoseconds>(end_ - Clock::now(), std::chrono::nanoseconds{0}, most);
  }
  void extend(std::chrono::nanoseconds by) {
    if (end_ != Clock::time_point::max()) {
      end_ += by;
    }
  }

 private:
  explicit Deadline(Clock::time_point end) : end_(end) {}

  Clock::time_point end_;
};

/// How long a waiter polls its flag before it sleeps.
struct SpinPolicy {
  unsigned spins;
  unsigned yields;
};

/// `runnable`: threads known to want a processor of this machine while a barrier is open, the waiter included. If
/// each has one, a long spin saves the way into the kernel and back. If they outnumber the processors, a spin much
/// longer than a round trip (about a microsecond) only takes the processor from the threads that it waits for.
inline SpinPolicy spin_policy(unsigned processors, unsigned runnable) {
  constexpr unsigned kYields = 8;
  if (processors == 1) {
    return {.spins = 0, .yields = kYields};
  }
  return {.spins = runnable <= processors ? 1000U : 100U, .yields = kYields};
}

}  // namespace gba
