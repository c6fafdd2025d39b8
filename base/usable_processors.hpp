// SPDX-License-Identifier: Apache-2.0
// How many processors a process may use.
#pragma once

#include <sched.h>

#include <array>

namespace base {

/// 1 if the kernel does not say.
inline unsigned usable_processors() {
  // The kernel refuses a set that is smaller than its own; kernels are built for up to 8192 processors.
  std::array<cpu_set_t, 64> sets{};
  return ::sched_getaffinity(0, sizeof sets, sets.data()) == 0
             ? static_cast<unsigned>(CPU_COUNT_S(sizeof sets, sets.data()))
             : 1;
}

}  // namespace base
