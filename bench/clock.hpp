// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace bench {

/// Runs from its construction on.
class Stopwatch {
 public:
  [[nodiscard]] double nanoseconds() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Says how often to measure: on an idle machine often enough for a good median, on a busy one, where everything takes
/// a thousand times longer, until there has been enough of it, but at least once.
class Repeats {
 public:
  explicit Repeats(double enough_nanoseconds = 8e9) : enough_(enough_nanoseconds) {}
  [[nodiscard]] bool another() { return done_++ == 0 || (done_ <= kMost && watch_.nanoseconds() < enough_); }

 private:
  static constexpr int kMost = 31;

  double enough_;
  Stopwatch watch_;
  int done_ = 0;
};

/// Nanoseconds that one of `count` calls of `action` takes on average.
template <typename Action>
double time_each(int count, Action&& action) {
  const Stopwatch watch;
  for (int i = 0; i < count; ++i) {
    action();
  }
  return watch.nanoseconds() / count;
}

}  // namespace bench
