// SPDX-License-Identifier: Apache-2.0
// Small data of collective calls, sent along with the words by which the members of a team synchronise.
#pragma once

#include <optional>
#include <string>

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// One member's side, for one team. Used by one thread at a time, as the team is.
///
/// Calls are numbered from 1, the same on all members. In each call a member may store data next to a word of its own,
/// and then the number in the word; other members wait for the number, and read the data. A member has kEagerSlots such
/// places and uses them in turn. Before it reuses a place it waits until the others have finished the call that used
/// the place before, so it is never more than kEagerSlots calls ahead of them.
class EagerChannel {
 public:
  /// `count` is the number of the last call in this slot, the same on all members.
  EagerChannel(const Job& job, const TeamMap& map, const SyncView& view, int slot, std::uint64_t count)
      : job_(job), map_(map), view_(view), slot_(slot), count_(count), free_(count + kEagerSlots) {}

  /// Each member, at the beginning of a call. An Error if an earlier call has failed.
  Result<void> begin();
  /// Stores the size, and the data if it has up to kEagerLimit bytes. Once per call.
  Result<void> give(const void* data, std::size_t size);
  struct Given {
    const std::byte* data;
    std::size_t size;
  };
  /// Waits for what that member gives in this call. Valid until end().
  Result<Given> take(int member);
  /// Which call all members are known to have begun.
  enum class Begun { kUnknown, kLast, kThis };
  /// What was taken is no longer read.
  void end(Begun by_all);

 private:
  template <typename Word>
  Result<void> wait(Word& word, std::uint64_t number);
  [[nodiscard]] EagerSlot& place(int member) const { return view_.eager(member).place[count_ % kEagerSlots]; }

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  int slot_;
  std::uint64_t count_;                  // of the last call begun
  std::uint64_t free_;                   // the places of calls up to this one are known to be free
  std::optional<BarrierMonitor> watch_;  // of this call, once it waits
  std::optional<Error> failed_;          // ends the channel
};

}  // namespace shmem
