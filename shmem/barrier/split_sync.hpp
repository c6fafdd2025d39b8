// SPDX-License-Identifier: Apache-2.0
// A barrier in two phases, in software: the members count themselves at the first one, whatever the team's algorithm
// is, because arriving there waits for nobody.
#pragma once

#include "shmem/barrier/combine.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// Each member arrives at barrier `count`, and then looks or waits for its end. As central_counter, so that the two
/// meet.
struct SplitSync {
  static void arrive(const WaitPolicy& policy, const SyncView& view, std::uint64_t count) {
    const auto never_asked = [] { return std::errc{}; };
    SoloCore core(policy, never_asked);
    arrive_at(core, counter(view), view.size(), count);
  }

  static bool is_over(const SyncView& view, std::uint64_t count) {
    // Acquire: pairs with the last member's arrive_at().
    return counter(view).value.load(std::memory_order_acquire) >= count << kArrivalBits;
  }

  template <std::invocable Check>
  static std::errc wait(const WaitPolicy& policy, const SyncView& view, std::uint64_t count, Check& check) {
    SoloCore core(policy, check);
    return wait_at(core, counter(view), count);
  }

 private:
  static SyncWord& counter(const SyncView& view) { return view.member(0).counter; }
};

}  // namespace shmem
