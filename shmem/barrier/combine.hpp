// SPDX-License-Identifier: Apache-2.0
// The members of a group come together at one of them, their leader, and are let go by it: one level of a barrier in
// levels.
#pragma once

#include "shmem/barrier/core_barrier.hpp"

namespace shmem {

/// Members first, first + stride, ... of a team. A member is in one group in each barrier.
struct Group {
  int first = 0;  // the leader
  int stride = 1;
  int size = 1;
};

/// So many members meet at `counter`: each adds one, and the last to come puts the number of the barrier above these
/// bits and clears them, which tells all who wait there. Until then nobody is woken.
template <Core C>
bool arrive_at(C& core, SyncWord& counter, int members, std::uint64_t count) {
  constexpr std::uint64_t kArrivals = (std::uint64_t{1} << kArrivalBits) - 1;
  const auto others = static_cast<std::uint64_t>(members) - 1;
  if (others > 0 && (core.fetch_add(counter, 1) & kArrivals) < others) {
    return false;
  }
  signal_set(core, counter, count << kArrivalBits);
  return true;
}

template <Core C>
std::errc wait_at(C& core, SyncWord& counter, std::uint64_t count) {
  return signal_wait_at_least(core, counter, count << kArrivalBits);
}

/// Called by one core of each member of `group`: tells the leader that this member has come. For the leader it returns
/// when all have; for the others at once.
template <Core C, typename View>
std::errc gather(C& core, const View& view, const Group& group, std::uint64_t count) {
  if (group.size == 1) {
    return {};
  }
  SyncWord& counter = view.member(group.first).counter;
  if (view.me() == group.first) {
    return wait_at(core, counter, count);
  }
  arrive_at(core, counter, group.size - 1, count);
  return {};
}

/// Called by the same cores after gather: the leader lets the others go; they wait for that.
template <Core C, typename View>
std::errc release(C& core, const View& view, const Group& group, std::uint64_t count) {
  if (group.size == 1) {
    return {};
  }
  SyncWord& word = view.member(group.first).release;
  if (view.me() != group.first) {
    return signal_wait_at_least(core, word, count);
  }
  signal_set(core, word, count);
  return {};
}

}  // namespace shmem
