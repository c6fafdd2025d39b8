// SPDX-License-Identifier: Apache-2.0
// The teams by which PEs of one node make the calls of active sets: with a team's barriers and eager data, and without
// a word in pSync.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <memory>

#include "shmem/team/local_team.hpp"
#include "shmem/team/team_slots.hpp"

namespace shmem {

/// An active set as programs name it.
struct SetName {
  int start, log_stride, size;
  auto operator<=>(const SetName&) const = default;
};

/// A set gets its team in the first call of its members, and keeps it to the end; kSetTeams at most for each PE. All
/// members decide alike: their calls of one set have one order, because no two threads of a PE make such calls at once
/// (is_enabled()). If they may, calls are told apart by their pSync alone.
///
/// These teams are not those of the program: a barrier in two phases may be open on the world, or a stream may use it.
class SetTeams {
 public:
  /// Gives a new team its algorithms; collective over the team.
  using Equip = std::function<Result<void>(Team&)>;

  SetTeams(const Job& job, Equip equip) : job_(job), slots_(job), equip_(std::move(equip)) {}

  /// Before a barrier of the bootstrap: whether this PE makes one call at a time, and SHMEM_DEBUG checks none.
  void announce(bool one_caller) const;
  /// After it: enabled if all PEs of the node do.
  void settle();
  /// Threads of this PE may be in several calls at once from now on. On all PEs at the same place in their order of
  /// calls.
  void disable() { enabled_ = false; }
  [[nodiscard]] bool is_enabled() const { return enabled_; }

  /// What is known of a set. No team: there was no slot for it.
  struct Entry {
    SetName name;
    std::unique_ptr<LocalTeam> team;
  };
  /// nullptr: nothing; create() follows. REQUIRES: is_enabled().
  [[nodiscard]] const Entry* find(const SetName& name) {
    return last_ != nullptr && last_->name == name ? last_ : search(name);
  }
  /// Collective over the set, in its first call. `sync` synchronises the members, `plan` has no slot yet.
  Result<const Entry*> create(const SetName& name, TeamPlan plan, const std::function<Result<void>()>& sync);

  /// With the library.
  void clear();

 private:
  const Entry* search(const SetName& name);

  const Job& job_;
  TeamSlots slots_;
  Equip equip_;
  bool enabled_ = false;
  const Entry* last_ = nullptr;
  std::map<SetName, Entry> entries_;
};

}  // namespace shmem
