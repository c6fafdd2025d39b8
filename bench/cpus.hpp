// SPDX-License-Identifier: Apache-2.0
// The two processors that everything is measured on.
#pragma once

#include <sched.h>

namespace bench {

struct CpuPair {
  int first = 0;
  int second = 0;
};

/// The first two processors that this process may use. Throws std::runtime_error if there is only one.
CpuPair first_two_cpus();

/// Ties the calling thread to one processor until the end of the object, then gives it back those it had. The
/// constructor throws std::system_error.
class Pinned {
 public:
  explicit Pinned(int cpu);
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned();

 private:
  cpu_set_t before_{};
};

}  // namespace bench
