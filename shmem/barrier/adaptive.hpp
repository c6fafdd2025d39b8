// SPDX-License-Identifier: Apache-2.0
// adaptive: another algorithm for each size of team, by a rule that needs no table.
#pragma once

#include "shmem/barrier/central_counter.hpp"
#include "shmem/barrier/npu_v3.hpp"
#include "shmem/barrier/recursive_doubling.hpp"

namespace shmem {

struct Adaptive {
  /// So many members read each other's words in the time of a few rounds.
  static constexpr int kFew = 8;

  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
    if (tuning.crowded) {
      // Each wait may be a turn of all the others: one word, one wait.
      return CentralCounter::arrive_and_wait(core, view, count, tuning);
    }
    if (view.size() <= kFew) {
      return NpuV3::arrive_and_wait(core, view, count, tuning);
    }
    return RecursiveDoubling::arrive_and_wait(core, view, count, tuning);
  }
};

}  // namespace shmem
