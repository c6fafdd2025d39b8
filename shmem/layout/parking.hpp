// SPDX-License-Identifier: Apache-2.0
// A PE that waits for a change of one of its words sleeps in its parking place; a PE that changes one checks there.
#pragma once

#include "shmem/layout/job.hpp"

namespace shmem {

// `job` is a Job; a template, so that a test can use the words of a memory model instead.

/// store_barrier_on_all() for waiting on such a word.
template <typename Word>
bool store_barrier_for(const Word& /*event*/) {
  return store_barrier_on_all();
}

/// Wakes `pe` if it sleeps. Called after a change of one of its words: either the caller sees the sleeper or the
/// sleeper sees the change (pairs with wait_parked). After a change that is not sequentially consistent, such as that
/// of a put, the sleeper's store_barrier_on_all() makes it so; where the kernel refuses that to one of the two, such a
/// wake-up can be missed, and the sleeper finds the change when its sleep ends.
template <typename AnyJob>
void wake_parked(const AnyJob& job, int pe) {
  auto& parking = job.metadata(pe).parking;
  // For the compiler only: the change comes before the look at the sleepers.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (parking.sleepers.load(std::memory_order_seq_cst) != 0) {
    parking.event.fetch_add(1, std::memory_order_seq_cst);  // pairs with the load in wait_parked
    futex_wake_all(parking.event);
  }
}

/// Waits until done(), which reads words of this PE. Ends early with the error of `check`.
template <typename AnyJob, std::predicate Done, std::invocable Check>
std::errc wait_parked(const AnyJob& job, Done done, Check check) {
  if (spin_until(job.policy, done, check)) {
    return {};
  }
  auto& parking = job.metadata(job.me).parking;
  // Pairs with wake_parked: the count, then the event, then the words.
  parking.sleepers.fetch_add(1, std::memory_order_seq_cst);
  std::chrono::nanoseconds nap = std::chrono::milliseconds{1};
  std::errc error{};
  bool looked_closely = false;
  for (;;) {
    const auto event = parking.event.load(std::memory_order_seq_cst);
    if (done() || (error = check()) != std::errc{}) {
      break;
    }
    if (job.policy.advance()) {
      spin_until(job.policy, done, check);  // there may be more soon: class Waiting
      continue;
    }
    // Once is enough: a PE that stores after it sees the count.
    if (!looked_closely) {
      looked_closely = true;
      if (store_barrier_for(parking.event)) {
        continue;
      }
    }
    futex_sleep(parking.event, event, job.policy.limit_word_nap(nap), job.policy.alarm);
    nap = std::min<std::chrono::nanoseconds>(nap * 2, kLongestSleep);
  }
  // Relaxed: a PE that still counts this one makes one superfluous wake-up call.
  parking.sleepers.fetch_sub(1, std::memory_order_relaxed);
  return error;
}

}  // namespace shmem
