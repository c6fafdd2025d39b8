// SPDX-License-Identifier: Apache-2.0
// Jobs that go on when PEs die: teams of those that are left, and processes that take the places of others.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "shmem/heap/symmetric_heap.hpp"
#include "shmem/layout/job.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {

/// What the death of a PE, and a process in its place, mean for the start of a job and for its teams. In all other jobs
/// it only says why they do not go on.
class Survival {
 public:
  Survival(Job& job, TeamTable& teams, SymmetricHeap& heap) : job_(job), teams_(teams), heap_(heap) {}

  /// Collective: makes the memory of the PEs of a node. In a process that takes the place of a PE: maps what the others
  /// have made.
  static Result<NodeMemory> open_memory(Bootstrap& bootstrap, const Options& options, std::size_t globals_size);

  /// This process has taken the place of a PE that has died.
  [[nodiscard]] bool replaces() const { return job_.bootstrap->replaces(); }
  /// The job goes on when a PE dies. After settle().
  [[nodiscard]] bool survives() const { return !cannot_; }

  /// In a process that takes the place of a PE: the others may see it from now on.
  void announce();
  /// Once all PEs are there. An Error in a process that takes the place of a PE of a job that does not go on.
  Result<void> settle();
  /// This PE could not start. The others may wait in shared memory for it, unless they have done without it before.
  void give_up_start(const std::string& reason) const;

  /// Collective over the members of the team that live: TeamTable::shrink(). An Error, on all of them, in a job that
  /// does not go on when a PE dies.
  Result<int> shrink(Team& team);
  /// The same with processes that take the places of PEs: TeamTable::grow(), or join() if this is such a process.
  Result<int> grow(Team& team, int processes);

 private:
  /// This process has not joined a team yet.
  [[nodiscard]] bool is_new() const { return replaces() && teams_.home_is_world(); }

  Job& job_;
  TeamTable& teams_;
  SymmetricHeap& heap_;
  std::optional<Error> cannot_;
};

}  // namespace shmem
