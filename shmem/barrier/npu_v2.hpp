// SPDX-License-Identifier: Apache-2.0
// npu_v2: group dissemination over the vector cores, O(log_k n). In phase p each PE tells k - 1 others, i * k^p to its
// right for i = 1 .. k - 1, and hears from as many to its left; its cores share them.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct NpuV2 {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
    return between_core_syncs(core, [&](C& self) {
      const int radix = tuning.radix;
      for (int phase = 0, distance = 1; distance < view.size(); ++phase, distance *= radix) {
        // What this PE tells in a phase is what all of its cores have heard before.
        if (const std::errc error = phase > 0 ? self.sync() : std::errc{}; error != std::errc{}) {
          return error;
        }
        if (const std::errc error = exchange(self, view, count, Phase{radix, phase * (radix - 1), distance});
            error != std::errc{}) {
          return error;
        }
      }
      return std::errc{};
    });
  }

 private:
  struct Phase {
    int radix;
    int first_word;
    int distance;
  };

  /// This core's part of a phase. Who is a whole round or more away has been heard of already.
  template <Core C, typename View>
  static std::errc exchange(C& core, const View& view, std::uint64_t count, const Phase& phase) {
    const int size = view.size();
    const auto is_there = [&](int i) { return i < phase.radix && i * phase.distance < size; };
    for (int i = 1 + core.index(); is_there(i); i += core.count()) {
      const int peer = (view.me() + i * phase.distance) % size;
      signal_set(core, round_word(view, peer, phase.first_word + i - 1, count), count);
    }
    for (int i = 1 + core.index(); is_there(i); i += core.count()) {
      SyncWord& mine = round_word(view, view.me(), phase.first_word + i - 1, count);
      if (const std::errc error = signal_wait_at_least(core, mine, count); error != std::errc{}) {
        return error;
      }
    }
    return {};
  }
};

}  // namespace shmem
