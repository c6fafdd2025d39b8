// SPDX-License-Identifier: Apache-2.0
// Shared by programs in which one PE, the target, computes and makes no calls while the other PEs, the actors, access
// its memory. Which PE is the target changes from step to step.
#pragma once

#define PE_CHECK_ENDS_JOB
#include "tests/integration/shmem/pe_checks.hpp"

namespace computing_target {

/// A word of this PE that other PEs change, as a program reads it without a call.
template <typename T>
T look(T& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

/// The PEs but `target`, which is the first or the last, as a team: INVALID on the target.
inline shmem_team_t team_of_actors(int target) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, target == 0 ? 1 : 0, 1, shmem_n_pes() - 1, nullptr, 0, &team) == 0);
  return team;
}

/// On the target: computes until all actors have said that they are done. `each_time` is a part of what it computes.
inline void compute(
    std::uint64_t& done, const std::function<void()>& each_time = [] {}) {
  const auto actors = static_cast<std::uint64_t>(shmem_n_pes()) - 1;
  volatile double sum = 0;
  while (look(done) != actors) {
    for (int i = 1; i < 1000; ++i) {
      sum = sum + 1.0 / i;
    }
    each_time();
  }
}

/// On an actor, when all that it has begun is complete.
inline void say_done(std::uint64_t* done, int target) {
  shmem_quiet();
  shmem_signal_add(done, 1, target);
  shmem_quiet();
}

}  // namespace computing_target
