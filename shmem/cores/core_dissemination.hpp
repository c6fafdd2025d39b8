// SPDX-License-Identifier: Apache-2.0
// A barrier of the cores of one PE in memory alone, as processors without a barrier of their own have it: dissemination
// over a pool of words, numbered by a counter that all cores read and write.
#pragma once

#include <span>

#include "shmem/cores/signal.hpp"

namespace shmem {

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
