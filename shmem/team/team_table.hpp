// SPDX-License-Identifier: Apache-2.0
// The live teams of this PE, by handle, and how new ones come to be.
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "shmem/team/team.hpp"

namespace shmem {

constexpr int kWorldTeam = 0;   // SHMEM_TEAM_WORLD
constexpr int kSharedTeam = 1;  // SHMEM_TEAM_SHARED

/// A handle is the team's slot, which all members agree on. Used by one thread at a time.
class TeamTable {
 public:
  /// `equip` gives a new team its barriers; collective over the team.
  using Equip = std::function<Result<void>(Team&)>;

  TeamTable(const Job& job, Equip equip) : job_(job), equip_(std::move(equip)) {}

  /// Collective over the job; a barrier of the bootstrap has passed since the memory was made.
  Result<void> make_predefined();

  /// The live team of this handle, or nullptr.
  [[nodiscard]] Team* find(int handle) const;

  /// Collective over `parent`. `map` is the new team that this PE will be in; its handle, or -1 without one. Several
  /// teams may be made at once: all PEs of a map pass the same one, and maps do not overlap. REQUIRES: all of them are
  /// in the parent.
  Result<int> split(Team& parent, const std::optional<TeamMap>& map);

  /// Collective over the team. REQUIRES: not a predefined team.
  Result<void> destroy(int handle, gba_device* port);
  /// Collective over the job: ends all teams of this PE, world last.
  Result<void> destroy_all(gba_device* port);

 private:
  Result<int> agree_on_slot(const TeamMap& map) const;
  [[nodiscard]] std::uint64_t agree_on_count(const TeamMap& map, int slot) const;
  Team& add(const TeamMap& map, int slot, std::uint64_t count);
  void set_taken(int slot, bool taken) const;

  const Job& job_;
  Equip equip_;
  std::array<std::unique_ptr<Team>, kMaxTeams> teams_;
};

}  // namespace shmem
