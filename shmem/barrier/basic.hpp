// SPDX-License-Identifier: Apache-2.0
// basic, O(n): member 0 receives from each of the others in turn, then sends to each.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct Basic {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      if (view.me() != 0) {
        signal_set(self, view.mine().round, count);
        return signal_wait_at_least(self, view.mine().release, count);
      }
      for (int i = 1; i < view.size(); ++i) {
        if (const std::errc error = signal_wait_at_least(self, view.member(i).round, count); error != std::errc{}) {
          return error;
        }
      }
      for (int i = 1; i < view.size(); ++i) {
        signal_set(self, view.member(i).release, count);
      }
      return std::errc{};
    });
  }
};

}  // namespace shmem
