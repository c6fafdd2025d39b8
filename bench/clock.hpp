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
