// SPDX-License-Identifier: Apache-2.0
// What the words of team/survivors.hpp say to a member that waits in a barrier of the team.
#pragma once

#include <cstdint>
#include <optional>

#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// SurvivalWords::verdict.
struct Verdict {
  std::uint64_t word;

  [[nodiscard]] std::uint64_t number() const { return word >> 1; }
  [[nodiscard]] bool is_in() const { return (word & 1) != 0; }
};

inline Verdict verdict_on(const SyncView& view, int member) {
  // Acquire: pairs with the votes.
  return {view.member(member).survival.verdict.load(std::memory_order_acquire)};
}

/// A shrink of the team has left out that member.
inline bool was_left_out(const SyncView& view, int member) {
  const Verdict verdict = verdict_on(view, member);
  return verdict.number() != 0 && !verdict.is_in();
}

/// A member that has begun a shrink which this one has not begun: the team's barriers cannot complete any more.
inline std::optional<int> first_to_shrink(const SyncView& view) {
  // Relaxed: nothing else is read because of it.
  const std::uint64_t mine = view.mine().survival.begun.load(std::memory_order_relaxed);
  for (int i = 0; i < view.size(); ++i) {
    if (view.member(i).survival.begun.load(std::memory_order_relaxed) > mine) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace shmem
