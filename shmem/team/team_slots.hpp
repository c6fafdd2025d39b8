// SPDX-License-Identifier: Apache-2.0
// The slots of the board that teams use, one after the other: reserved on all members, prepared by each.
#pragma once

#include <cstdint>

#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// Maps are of the members on this node. Thread-safe.
class TeamSlots {
 public:
  explicit TeamSlots(const Job& job) : job_(job) {}

  /// Called by one PE for all of the map: a slot from `first` to `first` + `count` - 1 that none of them uses, or -1.
  /// REQUIRES: both numbers are multiples of 64.
  [[nodiscard]] int reserve(const TeamMap& map, int first, int count) const;
  void give_back(const TeamMap& map, int slot) const;
  /// False if nothing changed.
  bool set_taken(int pe, int slot, bool taken) const;

  /// The number of the last barrier or call of these PEs in a slot that the caller has reserved; it tells the others.
  [[nodiscard]] std::uint64_t last_count(const TeamMap& map, int slot) const;
  /// Called by each member of a new team, between two syncs of the members, with that number: prepares its own words.
  void clear(int slot, std::uint64_t count) const { clear(slot, job_.me, count); }
  /// Called by one PE for all members, after reserve(): prepares the words of all, for a team whose members do not
  /// synchronise before they use it. They read the number in `entered` of their words.
  void prepare(const TeamMap& map, int slot) const;
  /// The PEs on which a team takes its slot.
  [[nodiscard]] TeamMap owners_of(const TeamMap& map) const { return map.is_list() ? TeamMap{0, 1, job_.size} : map; }

 private:
  [[nodiscard]] bool try_to_reserve(const TeamMap& map, int slot) const;
  void clear(int slot, int pe, std::uint64_t count) const;

  const Job& job_;
};

}  // namespace shmem
