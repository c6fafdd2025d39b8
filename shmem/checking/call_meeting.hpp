// SPDX-License-Identifier: Apache-2.0
// Collective calls are compared before they begin: every member says what it is about to do, and waits until all have.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "shmem/checking/board.hpp"

namespace shmem {

/// One PE's side. Thread-safe, as far as collective calls are: one at a time with each set.
///
/// A PE waits in a meeting for members that do something else for good only until it can know that: when PEs wait for
/// each other in a circle, which any two PEs that are in different calls end up in, or after SHMEM_BARRIER_TIMEOUT; and
/// SHMEM_BARRIER_WARN says for whom it waits. What is not a collective call is not seen.
class CallMeeting {
 public:
  explicit CallMeeting(const Job& job) : job_(job), mine_(call_board(job, job.me)) {}

  /// Meets the other members. What is wrong, if they do not make the same call: `text` says it and its arguments. "" if
  /// another PE says it, and has ended the job.
  /// Nothing if that cannot be known because a member has died or the job is ending: the call itself will find that.
  /// Where threads of a PE may be in several calls at once, circles are not looked for.
  std::optional<std::string> meet(const CallSet& set, const std::string& text, bool threads = false);
  /// Tells the others, without waiting for them.
  void announce(const CallSet& set, const std::string& text);
  /// After the last call of a team.
  void forget(const CallSet& set);

 private:
  struct Round {
    const CallSet& set;
    std::uint64_t number;
    int present;  // members before this one have come
  };
  class Watch;
  class Use;

  CallEntry* own_entry(const CallSet& set);
  [[nodiscard]] std::uint64_t count_of(int pe, const CallSet& set) const;
  bool all_present(Round& round) const;
  std::optional<std::string> differing_text(const Round& round) const;
  [[nodiscard]] std::optional<std::string> circle_text(int first) const;
  [[nodiscard]] std::string state_of(int pe) const;
  /// One line is enough: `problem` of the first PE that has one, "" for the others once that has ended the job.
  [[nodiscard]] std::string to_report(const std::string& problem) const;

  const Job& job_;
  CallBoard& mine_;
  std::mutex mutex_;                   // of the choice of entries, and of what follows
  std::set<const CallEntry*> in_use_;  // by threads that wait
};

}  // namespace shmem
