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
  /// `members` are numbers in the team, in any order. An Error unless they are different members, this PE one of them.
  static Result<PeList> create(const Job& job, const TeamMap& team, const std::uint32_t* members, std::uint32_t count);

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

/// The Check of one such barrier: as TimedWatch, and owner_dead if a PE of the list has died.
class ListWatch {
 public:
  ListWatch(const Job& job, const PeList& list) : job_(job), list_(list), time_(job) {}
  std::errc operator()();

  /// The PE that this one waits for now.
  void wait_for(int pe) { waits_for_ = pe; }
  [[nodiscard]] std::string explain(std::errc error) const;

 private:
  const Job& job_;
  const PeList& list_;
  TimedWatch time_;
  Clock::time_point next_look_{};
  int waits_for_ = -1;
  int dead_ = -1;
};

constexpr unsigned kMarkBits = 16;

/// Dissemination over the list. Two PEs tell each other by words of that pair alone, which count how often they have:
/// all PEs of a list take part in it once, in an order that agrees with their other lists, so both know what comes
/// next, whatever lists each has been in with others. A pair meets in one round of a barrier at most.
///
/// Called by all cores of all PEs of the list. Nobody returns before all have called. Errors: as the Check of `core`;
/// invalid_argument if a PE met this one with another list. After an error the words are of no use.
template <Core C>
std::errc partial_sync(C& core, const Job& job, const PeList& list, ListWatch& watch) {
  return on_core_zero(core, [&](C& self) {
    for (int distance = 1; distance < list.size(); distance <<= 1) {
      const int from = list.to_the_right(-distance);
      SyncWord& theirs = job.kernel_sync(list.to_the_right(distance)).told[static_cast<std::size_t>(job.me)];
      const std::uint64_t sent = (self.load(theirs) >> kMarkBits) + 1;  // nobody else stores there
      signal_set(self, theirs, sent << kMarkBits | list.mark());

      KernelSync& mine = job.kernel_sync(job.me);
      const std::uint64_t awaited = mine.heard[static_cast<std::size_t>(from)] + 1;
      std::uint64_t heard = 0;
      watch.wait_for(from);
      const std::errc error =
          signal_wait_until(self, mine.told[static_cast<std::size_t>(from)],
                            [&](std::uint64_t seen) { return (heard = seen) >> kMarkBits >= awaited; });
      if (error != std::errc{}) {
        return error;
      }
      mine.heard[static_cast<std::size_t>(from)] = awaited;
      // A PE that is further has been let go by this barrier.
      if (heard >> kMarkBits == awaited && (heard & ((1U << kMarkBits) - 1)) != list.mark()) {
        return std::errc::invalid_argument;
      }
    }
    return std::errc{};
  });
}

}  // namespace shmem
