// SPDX-License-Identifier: Apache-2.0
// What an algorithm may do on a vector core. Algorithms are templates over this, so the same text runs on the threads
// of a core group, on the calling thread alone, on simulated memory that is not coherent, and later on another
// processor.
#pragma once

#include <concepts>
#include <cstdint>
#include <system_error>

#include "shmem/cores/wait.hpp"

namespace shmem {

/// A core has a cache of its own. What it stores is in memory at the latest when it has called dcci for the line, or
/// fence; until it calls dcci or dcci_all it may go on reading what the line held when it first looked. Cores of one PE
/// do not share a cache either. SyncWords have a line each.
template <typename C>
concept Core = requires(C& core, SyncWord& word, std::uint64_t value) {
  { core.index() } -> std::convertible_to<int>;  // 0..count()-1
  { core.count() } -> std::convertible_to<int>;
  { core.load(word) } -> std::same_as<std::uint64_t>;
  core.store(word, value);
  /// Atomic, in memory, at once; wakes nobody. What the word held before.
  { core.fetch_add(word, value) } -> std::same_as<std::uint64_t>;
  /// Everything that this core has stored is in memory.
  core.fence();
  /// Writes the cache line of `address` to memory if it has been changed, and drops it.
  core.dcci(static_cast<const void*>(&word));
  /// The same for all lines of the cache.
  core.dcci_all();
  /// A wait for `word` to be another than `value`, which may return early: see Waiting.
  { core.begin_wait().pause(word, value) } -> std::same_as<std::errc>;
  /// Meets the other cores of this PE. Says nothing about memory.
  { core.sync() } -> std::same_as<std::errc>;
};

/// The calling thread as the only core of its PE: what host calls run on.
template <std::invocable Check>
class SoloCore {
 public:
  SoloCore(const WaitPolicy& policy, Check& check) : policy_(policy), check_(check) {}

  [[nodiscard]] static int index() { return 0; }
  [[nodiscard]] static int count() { return 1; }
  // Acquire: pairs with store() and fetch_add() of other PEs.
  static std::uint64_t load(const SyncWord& word) { return word.value.load(std::memory_order_acquire); }
  static void store(SyncWord& word, std::uint64_t value) { publish(word, value); }
  // Release: what this PE stored before it came is visible to the last to come, who acquires it and passes it on.
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

}  // namespace shmem
