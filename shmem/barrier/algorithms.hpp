// SPDX-License-Identifier: Apache-2.0
// From an Algorithm to its text.
#pragma once

#include "shmem/barrier/adaptive.hpp"
#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/barrier/basic.hpp"
#include "shmem/barrier/central_counter.hpp"
#include "shmem/barrier/dissemination.hpp"
#include "shmem/barrier/hierarchical.hpp"
#include "shmem/barrier/npu_v1.hpp"
#include "shmem/barrier/npu_v2.hpp"
#include "shmem/barrier/npu_v3.hpp"
#include "shmem/barrier/recursive_doubling.hpp"
#include "shmem/barrier/tournament.hpp"

namespace shmem {

/// Called by every core of every member with the same algorithm and the same `count`, one more than the last time
/// whatever the algorithm was then: all of them keep the number of the barrier in their words and compare it with >=,
/// so a team may change between any two barriers. No core returns before all have called, and then it sees what they
/// all stored before. After an error the words are of no use for this team.
///
/// `View` gives the members' words, as SyncView does.
template <Core C, typename View>
std::errc arrive_and_wait(const BarrierChoice& choice, C& core, const View& view, std::uint64_t count) {
  const BarrierTuning& tuning = choice.tuning;
  switch (choice.algorithm) {
    case Algorithm::kNpuV1:
      return NpuV1::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kNpuV2:
      return NpuV2::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kNpuV3:
      return NpuV3::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kCentralCounter:
      return CentralCounter::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kTournament:
      return Tournament::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kRecursiveDoubling:
      return RecursiveDoubling::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kDissemination:
      return Dissemination::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kBasic:
      return Basic::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kAdaptive:
      return Adaptive::arrive_and_wait(core, view, count, tuning);
    case Algorithm::kHierarchical:
      return Hierarchical::arrive_and_wait(core, view, count, tuning);
  }
  return std::errc::invalid_argument;
}

}  // namespace shmem
