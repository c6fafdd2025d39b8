// SPDX-License-Identifier: Apache-2.0
// npu_v3: centralized pull. Each PE writes one word of its own; its cores share the PEs of the team among them and read
// theirs.
#pragma once

#include "shmem/cores/core.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// Called by every core of every member with the same `count`, one more than the last time. `view` gives the members'
/// words. No member returns before all have called. Counts only grow and are compared with >=: a member that is already
/// in the next barrier has also been in this one.
template <Core C, typename View>
std::errc npu_v3(C& core, const View& view, std::uint64_t count) {
  if (const std::errc error = core.sync(); error != std::errc{}) {
    return error;
  }
  if (core.index() == 0) {
    core.store(view.mine().round, count);
  }
  // Everybody begins with his right neighbour, so that not all read the same word at once.
  for (int distance = 1 + core.index(); distance < view.size(); distance += core.count()) {
    SyncWord& word = view.member((view.me() + distance) % view.size()).round;
    core.dcci(&word);
    if (const std::errc error = core.wait_at_least(word, count); error != std::errc{}) {
      return error;
    }
  }
  return core.sync();
}

}  // namespace shmem
