// SPDX-License-Identifier: Apache-2.0
// How a process takes the place of a PE that has died, in a job on one node.
#pragma once

#include <chrono>
#include <vector>

#include "shmem/layout/job.hpp"
#include "shmem/result.hpp"

namespace shmem {

class Team;

/// The places in a job are numbered seats. A new process with the number of a dead PE maps the memory of the job
/// (bootstrap/start_record.hpp), and waits at its seat. Then the members of the team that is left of the world make a
/// new team together with it.
///
/// The members agree on those that live, as in a shrink (survivors.hpp). The one that makes the slot of the new team
/// writes there who is in it, the waiting processes among them, before it makes the slot known by one atomic step. So
/// all members have the same team, also if some die meanwhile, and each of them tells the new processes: the first one
/// to do so is enough. A process that dies after that is a dead member of the new team.
///
/// Old teams have the dead process as a member, not the new one. So admissions are counted: a team knows the count from
/// its start, and a process that was admitted later is not its member (peers.hpp: was_replaced()). A process that waits
/// is a member of no team.
///
/// Used by one thread at a time.
class Admission {
 public:
  explicit Admission(const Job& job) : job_(job) {}

  // Called by the new process.
  /// Before it publishes its process id: from now on no team has it as a member.
  void announce() const;
  /// Waits at its seat: the slot of the team that has admitted it.
  [[nodiscard]] Result<int> wait(std::chrono::milliseconds limit) const;

  // Called by the members.
  /// Waits until so many processes wait, a member of `team` has gone on without that, or the limit is over.
  [[nodiscard]] Result<void> await(const Team& team, int processes, std::chrono::milliseconds limit) const;
  /// After the members of `team` that are left have agreed: the launcher may free the seats of those that still run.
  void give_up_late(Team& team) const;
  /// The seats at which a process waits.
  [[nodiscard]] std::vector<int> waiting() const;
  /// Writes the members of a new team. REQUIRES: the caller has reserved the slot on all PEs.
  void write(int slot, const std::vector<int>& left, const std::vector<int>& admitted) const;
  /// All of them, ascending. After the slot was made known.
  [[nodiscard]] std::vector<int> read(int slot) const;
  /// Tells the new processes; without an effect if another member has told them.
  void tell(int slot) const;

 private:
  [[nodiscard]] bool waits(int pe) const;
  [[nodiscard]] std::uint64_t count_admission() const;

  const Job& job_;
};

}  // namespace shmem
