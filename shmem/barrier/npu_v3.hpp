// SPDX-License-Identifier: Apache-2.0
// npu_v3: centralized pull, O(n / k). Each PE writes one word of its own; its cores share the PEs of the team among
// them and read theirs.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct NpuV3 {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
    return between_core_syncs(core, [&](C& self) {
      if (self.index() == 0) {
        signal_set(self, view.mine().round, count);
      }
      return pull(self, view, count, std::min(tuning.radix, self.count()));
    });
  }

 private:
  /// Core c of the first `stride` reads words c, c + stride, ... of those to the right of this PE: so not all PEs read
  /// the same word at once.
  template <Core C, typename View>
  static std::errc pull(C& core, const View& view, std::uint64_t count, int stride) {
    if (core.index() >= stride) {
      return {};
    }
    for (int distance = 1 + core.index(); distance < view.size(); distance += stride) {
      SyncWord& word = view.member((view.me() + distance) % view.size()).round;
      if (const std::errc error = signal_wait_at_least(core, word, count); error != std::errc{}) {
        return error;
      }
    }
    return {};
  }
};

}  // namespace shmem
