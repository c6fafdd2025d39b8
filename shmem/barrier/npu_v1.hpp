// SPDX-License-Identifier: Apache-2.0
// npu_v1: dissemination by push, O(log2 n). In round r each PE tells the one 2^r to its right and hears from the one
// 2^r to its left; then it has heard, at second hand, of 2^(r+1) PEs. Core 0 alone does it.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct NpuV1 {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      const int size = view.size();
      for (int round = 0, distance = 1; distance < size; ++round, distance *= 2) {
        signal_set(self, round_word(view, (view.me() + distance) % size, round, count), count);
        SyncWord& mine = round_word(view, view.me(), round, count);
        if (const std::errc error = signal_wait_at_least(self, mine, count); error != std::errc{}) {
          return error;
        }
      }
      return std::errc{};
    });
  }
};

}  // namespace shmem
