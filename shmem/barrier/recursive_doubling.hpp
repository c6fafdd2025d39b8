// SPDX-License-Identifier: Apache-2.0
// recursive_doubling, O(log2 n). In round r each member of a power of two meets the one whose number differs in bit r.
// Those beyond the largest power of two in the team come and go with the one that many below.
#pragma once

#include <bit>

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

struct RecursiveDoubling {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(view.size())));
      if (view.me() >= power) {
        signal_set(self, view.mine().round, count);
        return signal_wait_at_least(self, view.member(view.me() - power).release, count);
      }
      if (view.me() + power >= view.size()) {
        return meet(self, view, count, power);
      }
      if (const std::errc error = signal_wait_at_least(self, view.member(view.me() + power).round, count);
          error != std::errc{}) {
        return error;
      }
      const std::errc error = meet(self, view, count, power);
      if (error == std::errc{}) {
        signal_set(self, view.mine().release, count);
      }
      return error;
    });
  }

 private:
  template <Core C, typename View>
  static std::errc meet(C& core, const View& view, std::uint64_t count, int power) {
    for (int round = 0, distance = 1; distance < power; ++round, distance *= 2) {
      signal_set(core, round_word(view, view.me(), round, count), count);
      SyncWord& theirs = round_word(view, view.me() ^ distance, round, count);
      if (const std::errc error = signal_wait_at_least(core, theirs, count); error != std::errc{}) {
        return error;
      }
    }
    return {};
  }
};

}  // namespace shmem
