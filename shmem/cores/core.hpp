// SPDX-License-Identifier: Apache-2.0
// The operations of a vector core, and the barriers of cores. Algorithms are templates over Core, so the same code runs
// on the threads of a core group, on the calling thread alone, on simulated memory that is not coherent, and later on
// another processor.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <system_error>

#include "shmem/cores/wait.hpp"

namespace shmem {

/// A core has a cache of its own. Its stores are in memory at the latest after dcci for the line, or fence; until dcci
/// or dcci_all it may read what the line contained at its first load. Cores of one PE do not share a cache either.
/// SyncWords have a line each.
template <typename C>
concept Core = requires(C& core, SyncWord& word, std::uint64_t value) {
  { core.index() } -> std::convertible_to<int>;  // 0..count()-1
  { core.count() } -> std::convertible_to<int>;
  { core.load(word) } -> std::same_as<std::uint64_t>;
  core.store(word, value);
  /// Atomic, in memory, at once; wakes no waiter. Returns the previous value.
  { core.fetch_add(word, value) } -> std::same_as<std::uint64_t>;
  /// All stores of this core are in memory afterwards.
  core.fence();
  /// Writes the cache line of `address` to memory if it is dirty, and drops it.
  core.dcci(static_cast<const void*>(&word));
  /// The same for all lines of the cache.
  core.dcci_all();
  /// A wait until `word` is not `value`, which may return early: see Waiting.
  { core.begin_wait().pause(word, value) } -> std::same_as<std::errc>;
  /// A barrier of the cores of this PE. Says nothing about memory.
  { core.sync() } -> std::same_as<std::errc>;
};

/// The calling thread as the only core of its PE: for host calls.
template <std::invocable Check>
class SoloCore {
 public:
  SoloCore(const WaitPolicy& policy, Check& check) : policy_(policy), check_(check) {}

  [[nodiscard]] static int index() { return 0; }
  [[nodiscard]] static int count() { return 1; }
  // Acquire: pairs with store() and fetch_add() of other PEs.
  static std::uint64_t load(const SyncWord& word) { return word.value.load(std::memory_order_acquire); }
  static void store(SyncWord& word, std::uint64_t value) { publish(word, value); }
  // Release: this PE's earlier stores are visible to the last PE to arrive, which acquires and passes them on.
  static std::uint64_t fetch_add(SyncWord& word, std::uint64_t value) {
    return word.value.fetch_add(value, std::memory_order_acq_rel);
  }
  Waiting<Check> begin_wait() { return {policy_, check_}; }
  // Processors that run Linux keep their caches coherent, and store() is a release.
  static void fence() {}
  static void dcci(const void* /*address*/) {}
  static void dcci_all() {}
  static std::errc sync() { return {}; }

 private:
  const WaitPolicy& policy_;
  Check& check_;
};

/// Publishes `value` in `word`, which no other core stores to meanwhile.
template <Core C>
void signal_set(C& core, SyncWord& word, std::uint64_t value) {
  core.store(word, value);
  core.dcci(&word);  // an unwritten line may stay in the cache forever
}

/// Waits until done(word). An error ends the wait only if done(word) is still false.
template <Core C, std::predicate<std::uint64_t> Done>
std::errc signal_wait_until(C& core, SyncWord& word, Done done) {
  auto wait = core.begin_wait();
  std::errc error{};
  for (;;) {
    core.dcci(&word);
    const std::uint64_t seen = core.load(word);
    if (done(seen)) {
      return {};
    }
    if (error != std::errc{}) {
      return error;  // checked once more: a member that arrived and then ended has arrived
    }
    error = wait.pause(word, seen);
  }
}

/// Counts only grow: a word beyond `value` belongs to a peer that is ahead.
template <Core C>
std::errc signal_wait_at_least(C& core, SyncWord& word, std::uint64_t value) {
  return signal_wait_until(core, word, [value](std::uint64_t seen) { return seen >= value; });
}

/// `pool` has `rounds` words for each core, at least log2 of their number; all words and `counter` are zero before the
/// first barrier. The counter needs no atomic addition: all cores store the same number, and none stores the next one
/// before all have read this one.
template <Core C>
std::errc disseminate_cores(C& core, SyncWord* pool, std::size_t rounds, SyncWord& counter) {
  core.fence();
  const std::uint64_t count = core.load(counter) + 1;
  const int cores = core.count();
  SyncWord* mine = pool + static_cast<std::size_t>(core.index()) * rounds;
  for (int round = 0, distance = 1; distance < cores; ++round, distance <<= 1) {
    const auto next = static_cast<std::size_t>((core.index() + distance) % cores);
    signal_set(core, pool[next * rounds + static_cast<std::size_t>(round)], count);
    if (const std::errc error = signal_wait_at_least(core, mine[round], count); error != std::errc{}) {
      return error;
    }
  }
  core.store(counter, count);
  core.dcci_all();  // what this core has read of the others is from before they came; the counter is for later ones
  return {};
}

}  // namespace shmem
