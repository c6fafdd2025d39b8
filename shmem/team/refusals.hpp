// SPDX-License-Identifier: Apache-2.0
// Votes in barriers that carry no data, as those of the device: the leader of a node that refuses tells the others
// before it arrives, and they look after the barrier. If no leader refuses, there are no messages.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shmem/net/process_group.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

/// One leader's side, with words in its RemoteArrival. Two alternate: a leader can be in the next vote before another
/// one has looked at its words, but not in the one after that. Used by one thread at a time.
class Refusals {
 public:
  /// Collective among the leaders, who all get one or none: a leader in more teams than the board has places has no
  /// words. `slot` is the team's on this node, `team` a number of the team.
  static Result<std::optional<Refusals>> create(const Job& job, ProcessGroup& leaders, const std::vector<int>& pes,
                                                int slot, std::uint32_t team);

  /// All leaders make this vote: `refuses` is a PE, or -1; `barrier` is a barrier among them. Returns a PE that
  /// refused, or -1: all of them, or none, get one. An Error if this leader could not tell, or of the barrier.
  template <typename Barrier>
  Result<int> vote(int refuses, Barrier barrier) {
    ++votes_;
    if (auto ok = refuses >= 0 ? tell(refuses) : Result<void>{}; !ok) {
      return ok.error();
    }
    if (auto ok = barrier(); !ok) {
      return ok.error();
    }
    const int other = take();
    return refuses >= 0 ? refuses : other;
  }

 private:
  Refusals(const Job& job, const std::vector<int>& pes, int slot, std::uint32_t team)
      : job_(job), pes_(pes), slot_(slot), team_(team) {}
  Result<void> tell(int pe) const;
  [[nodiscard]] int take() const;
  [[nodiscard]] std::atomic<std::uint64_t>& mine(std::uint64_t vote) const;

  const Job& job_;
  const std::vector<int>& pes_;  // of the leaders, in the world
  int slot_;
  std::uint32_t team_;
  std::vector<int> slots_;  // of the leaders
  std::uint64_t votes_ = 0;
};

}  // namespace shmem
