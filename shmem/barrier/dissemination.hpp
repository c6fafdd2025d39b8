// SPDX-License-Identifier: Apache-2.0
// dissemination: that of npu_v1 by pull, O(log2 n). Each PE stores to words of its own; the one 2^r to its right reads
// that of round r.
#pragma once

#include "shmem/barrier/combine.hpp"

namespace shmem {

/// Called by one core of each member of `group`; returns when all have called.
template <Core C, typename View>
std::errc disseminate(C& core, const View& view, const Group& group, std::uint64_t count) {
  const int me = (view.me() - group.first) / group.stride;
  for (int round = 0, distance = 1; distance < group.size; ++round, distance *= 2) {
    signal_set(core, round_word(view, view.me(), round, count), count);
    const int peer = group.first + (me + group.size - distance) % group.size * group.stride;
    if (const std::errc error = signal_wait_at_least(core, round_word(view, peer, round, count), count);
        error != std::errc{}) {
      return error;
    }
  }
  return {};
}

struct Dissemination {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) { return disseminate(self, view, Group{0, 1, view.size()}, count); });
  }
};

}  // namespace shmem
