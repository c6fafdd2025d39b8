// SPDX-License-Identifier: Apache-2.0
// Collective calls are compared before they begin: every member announces its call, and waits until all have.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "shmem/checking/board.hpp"

namespace shmem {

/// One PE's side. Thread-safe, as far as collective calls are: one at a time with each set.
///
/// A PE in a rendezvous waits for members in other calls until the mismatch is proven: PEs wait for each other in a
/// circle, as any two PEs in different calls end up doing, or SHMEM_BARRIER_TIMEOUT has passed. SHMEM_BARRIER_WARN
/// names the missing PEs. Only collective calls are seen.
class CallRendezvous {
 public:
  explicit CallRendezvous(const Job& job) : job_(job), mine_(call_board(job, job.me)) {}

  /// Waits for the other members. If they do not make the same call, returns the problem, with the calls and their
  /// arguments; "" if another PE reports it and has ended the job. Nothing if a member has died or the job is ending:
  /// the call itself will detect that. Circles are not searched for if several threads of a PE may be in calls at once.
  std::optional<std::string> compare(const CallSet& set, const std::string& text, bool threads = false);
  /// Tells the other members, without waiting for them.
  void announce(const CallSet& set, const std::string& text);
  /// After the last call of a team.
  void forget(const CallSet& set);

 private:
  struct Round {
    const CallSet& set;
    std::uint64_t number;
    int present;  // members before this one have arrived
  };
  class Monitor;
  class Use;

  CallEntry* own_entry(const CallSet& set);
  [[nodiscard]] std::uint64_t count_of(int pe, const CallSet& set) const;
  bool all_present(Round& round) const;
  std::optional<std::string> differing_text(const Round& round) const;
  [[nodiscard]] std::optional<std::string> circle_text(int first) const;
  [[nodiscard]] std::string state_of(int pe) const;
  /// Reports a problem once: returns `problem` on the first PE that has one, "" on the others once that PE has ended
  /// the job.
  [[nodiscard]] std::string to_report(const std::string& problem) const;

  const Job& job_;
  CallBoard& mine_;
  std::mutex mutex_;                   // of the choice of entries, and of the members below
  std::set<const CallEntry*> in_use_;  // by threads that wait
};

}  // namespace shmem
