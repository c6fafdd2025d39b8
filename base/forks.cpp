// SPDX-License-Identifier: Apache-2.0
#include "base/forks.hpp"

#include <pthread.h>

#include <atomic>

namespace base {
namespace {

constinit std::atomic<unsigned> fork_count{0};

void count_fork() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

unsigned forks() {
  [[maybe_unused]] static const int installed = ::pthread_atfork(nullptr, nullptr, count_fork);
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace base
