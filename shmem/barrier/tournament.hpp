// SPDX-License-Identifier: Apache-2.0
// tournament, O(log2 n). In round r a member whose number is an odd multiple of 2^r loses to the one 2^r below it, and
// tells it that all those it has beaten have come, too. Who is beaten waits for his winner to be let go.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct Tournament {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      const int me = view.me();
      int distance = 1;
      for (; distance < view.size() && me % (2 * distance) == 0; distance *= 2) {
        if (me + distance >= view.size()) {
          continue;  // wins without an opponent
        }
        if (const std::errc error = signal_wait_at_least(self, view.member(me + distance).round, count);
            error != std::errc{}) {
          return error;
        }
      }
      if (me != 0) {
        signal_set(self, view.mine().round, count);
        if (const std::errc error = signal_wait_at_least(self, view.member(me - distance).release, count);
            error != std::errc{}) {
          return error;
        }
      }
      signal_set(self, view.mine().release, count);  // for all that I have beaten
      return std::errc{};
    });
  }
};

}  // namespace shmem
