// SPDX-License-Identifier: Apache-2.0
// Barriers among the PEs of a list, which may differ from call to call.
#pragma once

#include <string>
#include <vector>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// PEs of the world in ascending order, so that all PEs see the same list whatever order they gave.
class PeList {
 public:
  /// `members` are numbers in the team, in any order. An Error unless they are distinct members and include PE `me`.
  static Result<PeList> create(int me, const TeamMap& team, const std::uint32_t* members, std::uint32_t count);

  [[nodiscard]] int size() const { return static_cast<int>(pes_.size()); }
  [[nodiscard]] int me() const { return me_; }
  /// The PE `distance` places to the right.
  [[nodiscard]] int to_the_right(int distance) const {
    return pes_[static_cast<std::size_t>(((me_ + distance) % size() + size()) % size())];
  }
  /// Different for almost all pairs of lists.
  [[nodiscard]] std::uint64_t mark() const { return mark_; }
  [[nodiscard]] const std::vector<int>& pes() const { return pes_; }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<int> pes_;
  int me_ = 0;
  std::uint64_t mark_ = 0;
};

/// In a job on several nodes: the same steps by messages that contain a pair's words. Called by one core of each PE of
/// the list, whose numbers are of the world. An Error names the PE that did not arrive.
Result<void> list_barrier_by_messages(Network& network, const PeList& list);

/// The words of the job's PEs, seen from one of them.
class ListWords {
 public:
  explicit ListWords(const Job& job) : job_(job) {}

  [[nodiscard]] int me() const { return job_.me; }
  /// The word of `pe` that PE `by` writes.
  [[nodiscard]] SyncWord& received(int pe, int by) const {
    return job_.kernel_sync(pe).received[static_cast<std::size_t>(by)];
  }
  /// A word that only this PE uses.
  [[nodiscard]] std::uint64_t& awaited(int from) const {
    return job_.kernel_sync(job_.me).awaited[static_cast<std::size_t>(from)];
  }

 private:
  const Job& job_;
};

/// A wait in one such barrier. One more error: owner_dead if a PE of the list has died.
class ListMonitor final : public WaitMonitor {
 public:
  /// `prefix` begins messages.
  ListMonitor(const Job& job, const PeList& list, std::string prefix)
      : WaitMonitor(job), list_(list), prefix_(std::move(prefix)) {}

  /// The PE that this one waits for now, if any.
  int& waits_for() { return waits_for_; }
  [[nodiscard]] std::string explain(std::errc error) const override;

 private:
  std::errc look() override;
  void warn(std::chrono::seconds waited) const override;
  [[nodiscard]] std::string subject() const override;
  [[nodiscard]] std::string awaited() const override;

  const PeList& list_;
  std::string prefix_;
  int waits_for_ = -1;
  int dead_ = -1;
};

constexpr unsigned kMarkBits = 16;

/// Dissemination over the list. Two PEs signal each other by words of that pair alone, which count the signals: all PEs
/// of a list take part once, in an order that agrees with their other lists, so both know which count comes next,
/// whatever other lists each has been in. A pair takes part in at most one round of a barrier.
///
/// Called by all cores of all PEs of the list. None returns before all have called. `waits_for` is the PE that core 0
/// waits for, or waited for last. Errors: as the Check of `core`; invalid_argument if a PE came with another list.
/// After an error the words are unusable.
///
/// `Words` provides the words of pairs, like ListWords.
template <Core C, typename Words>
std::errc partial_sync(C& core, const Words& words, const PeList& list, int& waits_for) {
  return on_core_zero(core, [&](C& self) {
    for (int distance = 1; distance < list.size(); distance <<= 1) {
      SyncWord& theirs = words.received(list.to_the_right(distance), words.me());
      const std::uint64_t sent = (self.load(theirs) >> kMarkBits) + 1;  // no other PE stores there
      signal_set(self, theirs, sent << kMarkBits | list.mark());

      waits_for = list.to_the_right(-distance);
      const std::uint64_t next = words.awaited(waits_for) + 1;
      std::uint64_t last = 0;
      const auto has_come = [&](std::uint64_t seen) { return (last = seen) >> kMarkBits >= next; };
      const std::errc error = signal_wait_until(self, words.received(words.me(), waits_for), has_come);
      if (error != std::errc{}) {
        return error;
      }
      words.awaited(waits_for) = next;
      // A PE at a larger distance has been released by this barrier.
      if (last >> kMarkBits == next && (last & ((1U << kMarkBits) - 1)) != list.mark()) {
        return std::errc::invalid_argument;
      }
    }
    return std::errc{};
  });
}

}  // namespace shmem
