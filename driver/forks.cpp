// SPDX-License-Identifier: Apache-2.0
#include "driver/forks.hpp"

#include <pthread.h>

#include <atomic>

namespace gba {
namespace {

constinit std::atomic<unsigned> fork_count{0};

void in_child() {
  fork_count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

unsigned forks() {
  [[maybe_unused]] static const int installed = ::pthread_atfork(nullptr, nullptr, in_child);
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace gba
