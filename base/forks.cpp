// SPDX-License-Identifier: Apache-2.0
#include "base/forks.hpp"

#include <pthread.h>

namespace base {

constinit std::atomic<unsigned> forks_detail::fork_count{0};

namespace {

void count_fork() {
  forks_detail::fork_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

unsigned forks() {
  [[maybe_unused]] static const int installed = ::pthread_atfork(nullptr, nullptr, count_fork);
  return forks_by_now();
}

}  // namespace base
