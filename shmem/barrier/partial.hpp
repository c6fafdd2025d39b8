// SPDX-License-Identifier: Apache-2.0
// Barriers among the PEs of a list, which may be another one each time.
#pragma once

#include <string>
#include <vector>

#include "shmem/barrier/core_barrier.hpp"
#include "shmem/barrier/timed_watch.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// PEs of the world in ascending order, so that all PEs of a list see the same one however they wrote it down.
class PeList {
 public:
  /// `members` are numbers in the team, in any order. An Error unless they are different members, PE `me` one of them.
  static Result<PeList> create(int me, const TeamMap& team, const std::uint32_t* members, std::uint32_t count);

  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] int me() const { return me_; }
  /// The PE `distance` places to the right.
  [[nodiscard]] int to_the_right(int distance) const {
    return pes_[static_cast<std::size_t>(((me_ + distance) % size() + size()) % size())];
  }
  /// Tells lists apart, mostly.
  [[nodiscard]] std::uint64_t mark() const { return mark_; }
  [[nodiscard]] const std::vector<int>& pes() const { return pes_; }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<int> pes_;
  int me_ = 0;
  std::uint64_t mark_ = 0;
};

/// In a job on several nodes: the same steps by messages, in which a pair's words travel. Called by one core of each PE
/// of the list, whose numbers are of the world. An Error says whom it waited for.
Result<void> meet_by_messages(Network& network, const PeList& list);

/// The words of the job's PEs, seen from one of them.
class PairWords {
 public:
  explicit PairWords(const Job& job) : job_(job) {}

  [[nodiscard]] int me() const { return job_.me; }
  /// Of `pe`, written by PE `by`.
  [[nodiscard]] SyncWord& told(int pe, int by) const { return job_.kernel_sync(pe).told[static_cast<std::size_t>(by)]; }
  /// Of this PE alone.
  [[nodiscard]] std::uint64_t& heard(int from) const {
    return job_.kernel_sync(job_.me).heard[static_cast<std::size_t>(from)];
  }

 private:
  const Job& job_;
};

/// The Check of one such barrier: as TimedWatch, and owner_dead if a PE of the list has died. Says so when it takes
/// long.
class ListWatch {
 public:
  /// `who` begins messages.
  ListWatch(const Job& job, const PeList& list, std::string who)
      : job_(job), list_(list), who_(std::move(who)), time_(job) {}
  std::errc operator()();

  /// Set to the PE that this one waits for now, if it is one.
  int& waits_for() { return waits_for_; }
  [[nodiscard]] std::string explain(std::errc error) const;

 private:
  void warn(Clock::time_point now);
  [[nodiscard]] std::string subject() const;
  [[nodiscard]] std::string awaited() const;

  const Job& job_;
  const PeList& list_;
  std::string who_;
  TimedWatch time_;
  Clock::time_point began_{};
  Clock::time_point next_look_{};
  Clock::time_point next_warning_{};
  int waits_for_ = -1;
  int dead_ = -1;
};

constexpr unsigned kMarkBits = 16;

/// Dissemination over the list. Two PEs tell each other by words of that pair alone, which count how often they have:
/// all PEs of a list take part in it once, in an order that agrees with their other lists, so both know what comes
/// next, whatever lists each has been in with others. A pair meets in one round of a barrier at most.
///
/// Called by all cores of all PEs of the list. Nobody returns before all have called. `waits_for` is the PE that core 0
/// waits for, or waited for last. Errors: as the Check of `core`; invalid_argument if a PE met this one with another
/// list. After an error the words are of no use.
///
/// `Words` gives the words of pairs, as PairWords does.
template <Core C, typename Words>
std::errc partial_sync(C& core, const Words& words, const PeList& list, int& waits_for) {
  return on_core_zero(core, [&](C& self) {
    for (int distance = 1; distance < list.size(); distance <<= 1) {
      SyncWord& theirs = words.told(list.to_the_right(distance), words.me());
      const std::uint64_t sent = (self.load(theirs) >> kMarkBits) + 1;  // nobody else stores there
      signal_set(self, theirs, sent << kMarkBits | list.mark());

      waits_for = list.to_the_right(-distance);
      const std::uint64_t awaited = words.heard(waits_for) + 1;
      std::uint64_t told = 0;
      const auto has_come = [&](std::uint64_t seen) { return (told = seen) >> kMarkBits >= awaited; };
      const std::errc error = signal_wait_until(self, words.told(words.me(), waits_for), has_come);
      if (error != std::errc{}) {
        return error;
      }
      words.heard(waits_for) = awaited;
      // A PE that is further has been let go by this barrier.
      if (told >> kMarkBits == awaited && (told & ((1U << kMarkBits) - 1)) != list.mark()) {
        return std::errc::invalid_argument;
      }
    }
    return std::errc{};
  });
}

}  // namespace shmem
