// SPDX-License-Identifier: Apache-2.0
// central_counter: every member adds one at member 0, and the last to come tells all. One word for everything: two PEs
// move one cache line, and where PEs outnumber processors, each is on a processor once a barrier.
#pragma once

#include "shmem/barrier/combine.hpp"

namespace shmem {

struct CentralCounter {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& /*tuning*/) {
    return on_core_zero(core, [&](C& self) {
      SyncWord& counter = view.member(0).counter;
      return arrive_at(self, counter, view.size(), count) ? std::errc{} : wait_at(self, counter, count);
    });
  }
};

}  // namespace shmem
