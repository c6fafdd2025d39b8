// SPDX-License-Identifier: Apache-2.0
// What an algorithm may do on a vector core. Algorithms are templates over this, so the same text runs on the threads
// of a core group, on the calling thread alone, on simulated memory, and later on another processor.
#pragma once

#include <concepts>
#include <cstdint>
#include <system_error>

#include "shmem/cores/wait.hpp"

namespace shmem {

template <typename C>
concept Core = requires(C& core, SyncWord& word, std::uint64_t value) {
  { core.index() } -> std::convertible_to<int>;  // 0..count()-1
  { core.count() } -> std::convertible_to<int>;
  /// Makes `value` visible to other PEs after everything stored before it.
  core.store(word, value);
  /// Waits until the word of any PE is at least `value`; what its PE stored before is visible then.
  { core.wait_at_least(word, value) } -> std::same_as<std::errc>;
  /// Drops the cache line of `address`, so that the next load sees what other processors stored.
  core.dcci(static_cast<const void*>(&word));
  /// Meets the other cores of this PE.
  { core.sync() } -> std::same_as<std::errc>;
};

/// The calling thread as the only core of its PE: what host calls run on.
template <std::invocable Check>
class SoloCore {
 public:
  SoloCore(const WaitPolicy& policy, Check& check) : policy_(policy), check_(check) {}

  [[nodiscard]] static int index() { return 0; }
  [[nodiscard]] static int count() { return 1; }
  static void store(SyncWord& word, std::uint64_t value) { publish(word, value); }
  std::errc wait_at_least(SyncWord& word, std::uint64_t value) {
    return wait_on(
        word, policy_, [value](std::uint64_t seen) { return seen >= value; }, check_);
  }
  static void dcci(const void* /*address*/) {}  // processors that run Linux keep their caches coherent
  static std::errc sync() { return {}; }

 private:
  const WaitPolicy& policy_;
  Check& check_;
};

}  // namespace shmem
