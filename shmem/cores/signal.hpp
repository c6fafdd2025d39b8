// SPDX-License-Identifier: Apache-2.0
// The two steps that every barrier is made of: one core stores a word, another waits for it. Neither says anything
// about other memory: fence before the first set, dcci_all after the last wait.
#pragma once

#include "shmem/cores/core.hpp"

namespace shmem {

/// Lets others see `value` in `word`, which only this core stores to for now.
template <Core C>
void signal_set(C& core, SyncWord& word, std::uint64_t value) {
  core.store(word, value);
  core.dcci(&word);  // a line that nobody writes back may stay in the cache for ever
}

/// Waits until done(word). An error that ends the wait comes only if it is not.
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
      return error;  // looked at once more: whoever came and then ended has come
    }
    error = wait.pause(word, seen);
  }
}

/// Counts only grow: a word that has passed `value` is a peer that is ahead already.
template <Core C>
std::errc signal_wait_at_least(C& core, SyncWord& word, std::uint64_t value) {
  return signal_wait_until(core, word, [value](std::uint64_t seen) { return seen >= value; });
}

}  // namespace shmem
