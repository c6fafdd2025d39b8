// SPDX-License-Identifier: Apache-2.0
// Small data of collective calls, carried by the words through which the members of a team meet.
#pragma once

#include <optional>
#include <string>

#include "shmem/barrier/watch.hpp"
#include "shmem/result.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// One member's side, for one team. Used by one thread at a time, as the team is.
///
/// Calls are numbered from 1, alike on all members. In each a member may put something beside a word of its own, which
/// then holds the number; others wait for that, and read. There are kCarriedTurns such places, by turns: a member may
/// be as many calls ahead of others, and no more, because it waits until they have finished the call that the place
/// was used for before.
class Carrier {
 public:
  /// `count` is the number of the last call there, the same on all members.
  Carrier(const Job& job, const TeamMap& map, const SyncView& view, int slot, std::uint64_t count)
      : job_(job), map_(map), view_(view), slot_(slot), count_(count), free_(count + kCarriedTurns) {}

  /// Each member, at the beginning of a call. An Error if an earlier call has failed.
  Result<void> begin();
  /// At most kMostCarried bytes of it are put down, and the size. Once in a call.
  Result<void> give(const void* data, std::size_t size);
  struct Given {
    const std::byte* data;
    std::size_t size;
  };
  /// What that member has given in this call: waits for it. Until end().
  Result<Given> take(int member);
  /// Nothing that was taken is looked at any more. `all_gave`: it was taken from all members.
  void end(bool all_gave);

 private:
  template <typename Word>
  Result<void> wait(Word& word, std::uint64_t number);
  [[nodiscard]] CarriedPlace& place(int member) const { return view_.carried(member).place[count_ % kCarriedTurns]; }

  const Job& job_;
  const TeamMap& map_;
  const SyncView& view_;
  int slot_;
  std::uint64_t count_;                // of the last call begun
  std::uint64_t free_;                 // up to this call the places are known to be free
  std::optional<BarrierWatch> watch_;  // of this call, once there is something to wait for
  std::optional<Error> failed_;        // of the call after which there can be no other
};

}  // namespace shmem
