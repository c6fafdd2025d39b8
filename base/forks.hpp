// SPDX-License-Identifier: Apache-2.0
// Whether this process is the one that made something, or a child that it has forked since.
#pragma once

#include <atomic>

namespace base {

namespace forks_detail {
extern constinit std::atomic<unsigned> fork_count;
}

/// How many forks lie between this process and the one that first asked.
unsigned forks();
/// The same once that has been called: a load.
inline unsigned forks_by_now() {
  return forks_detail::fork_count.load(std::memory_order_relaxed);  // changes only in a new process
}

}  // namespace base
