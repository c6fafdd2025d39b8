// SPDX-License-Identifier: Apache-2.0
// What all algorithms have around their own steps.
#pragma once

#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/cores/signal.hpp"
#include "shmem/team/metadata.hpp"

namespace shmem {

/// Word `i` of a member in barrier `count`. There are two sets of words, by turns: a member that is late with words of
/// one barrier must not undo what one that is ahead stores for the next, by another algorithm perhaps. By the barrier
/// after that, nobody is in the first one any more.
template <typename View>
SyncWord& round_word(const View& view, int member, int i, std::uint64_t count) {
  return view.round(member, 2 * i + static_cast<int>(count & 1));
}

/// The cores of a PE arrive, one or several of them talk to the other members, the cores leave. `steps(core)` is called
/// by every core.
template <Core C, typename Steps>
std::errc between_core_syncs(C& core, Steps steps) {
  core.fence();  // what this core stored is in memory before anybody is told that it has come
  if (const std::errc error = core.sync(); error != std::errc{}) {
    return error;
  }
  if (const std::errc error = steps(core); error != std::errc{}) {
    return error;
  }
  if (const std::errc error = core.sync(); error != std::errc{}) {
    return error;
  }
  core.dcci_all();  // what this core has read of the others is from before they came
  return {};
}

/// The same where core 0 alone talks.
template <Core C, typename Steps>
std::errc on_core_zero(C& core, Steps steps) {
  return between_core_syncs(core, [&steps](C& self) { return self.index() == 0 ? steps(self) : std::errc{}; });
}

}  // namespace shmem
