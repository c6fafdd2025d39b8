// SPDX-License-Identifier: Apache-2.0
// From an Algorithm to its text.
#pragma once

#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/barrier/central_counter.hpp"
#include "shmem/barrier/npu_v3.hpp"

namespace shmem {

/// Called by every core of every member with the same algorithm and the same `count`, one more than the last time
/// whatever the algorithm was then: all of them keep the number of the barrier in their words and compare it with >=,
/// so a team may change between any two barriers. No core returns before all have called, and then it sees what they
/// all stored before. After an error the words are of no use for this team.
///
/// `View` gives the members' words, as SyncView does.
template <Core C, typename View>
std::errc arrive_and_wait(Algorithm algorithm, C& core, const View& view, std::uint64_t count,
                          const BarrierTuning& tuning = {}) {
  switch (algorithm) {
    case Algorithm::kNpuV3:
      return NpuV3::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kCentralCounter:
      return CentralCounter::arrive_and_wait(core, view, count, tuning);
  }
  return std::errc::invalid_argument;
}

}  // namespace shmem
