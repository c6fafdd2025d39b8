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

/// Counts the members that come to `counter`: true for the last of them, and then it is 0 again.
template <Core C>
bool is_last(C& core, SyncWord& counter, std::uint64_t members) {
  if (members == 1) {
    return true;
  }
  if (core.fetch_add(counter, 1) + 1 < members) {
    return false;
  }
  core.fetch_add(counter, ~members + 1);
  return true;
}

/// Called by one core of each member of `group`: tells the leader that this member has come. For the leader it returns
/// when all have; for the others at once.
///
/// The others count themselves and the last one tells the leader: he looks at one word, and is woken once.
template <Core C, typename View>
std::errc gather(C& core, const View& view, const Group& group, std::uint64_t count) {
  if (group.size == 1) {
    return {};
  }
  TeamSync& leader = view.member(group.first);
  if (view.me() == group.first) {
    return signal_wait_at_least(core, leader.round, count);
  }
  if (is_last(core, leader.counter, static_cast<std::uint64_t>(group.size) - 1)) {
    signal_set(core, leader.round, count);
  }
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
