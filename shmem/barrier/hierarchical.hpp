// SPDX-License-Identifier: Apache-2.0
// hierarchical: the cores of a PE, the PEs of a place, the places. In each group of neighbours one leader waits for the
// others; the leaders meet by dissemination and let their groups go.
#pragma once

#include "shmem/barrier/dissemination.hpp"

namespace shmem {

struct Hierarchical {
  template <Core C, typename View>
  static std::errc arrive_and_wait(C& core, const View& view, std::uint64_t count, const BarrierTuning& tuning) {
    return on_core_zero(core, [&](C& self) {
      const int most = tuning.group > 0 ? std::min(tuning.group, view.size()) : view.size();
      const int first = view.me() / most * most;
      const Group group{first, 1, std::min(most, view.size() - first)};
      if (const std::errc error = gather(self, view, group, count); error != std::errc{}) {
        return error;
      }
      if (view.me() == first) {
        const Group leaders{0, most, (view.size() + most - 1) / most};
        if (const std::errc error = disseminate(self, view, leaders, count); error != std::errc{}) {
          return error;
        }
      }
      return release(self, view, group, count);
    });
  }
};

}  // namespace shmem
