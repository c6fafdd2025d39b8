// SPDX-License-Identifier: Apache-2.0
// central_counter: every member adds one at member 0, and the last to come tells all. One word that everybody waits
// for: where PEs outnumber processors, each is on a processor once a barrier.
#pragma once

#include "shmem/barrier/combine.hpp"

namespace shmem {

struct CentralCounter {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      TeamSync& central = view.member(0);
      if (is_last(self, central.counter, static_cast<std::uint64_t>(view.size()))) {
        signal_set(self, central.release, count);
        return std::errc{};
      }
      return signal_wait_at_least(self, central.release, count);
    });
  }
};

}  // namespace shmem
