// SPDX-License-Identifier: Apache-2.0
// The live teams of this PE, by handle, and how new ones come to be.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shmem/team/team.hpp"

namespace shmem {

constexpr int kWorldTeam = 0;   // SHMEM_TEAM_WORLD
constexpr int kSharedTeam = 1;  // SHMEM_TEAM_SHARED

/// What a PE asks of a split.
struct SplitRequest {
  TeamCall call{};                 // as the program made it; the same on all PEs of the parent
  std::optional<Error> refusal{};  // why it cannot be had: the answer once all are known to have made the same call
  std::optional<TeamMap> map{};    // the new team that this PE will be in, by numbers of the world
  int contexts = 0;
};

/// A handle is the team's slot, which all members on a node agree on. Several threads may look for teams, and make and
/// end teams of different parents, at once; a team that one of them ends is used by none.
class TeamTable {
 public:
  /// `equip` gives a new team its barriers; collective over the team.
  using Equip = std::function<Result<void>(Team&)>;

  TeamTable(const Job& job, Equip equip) : job_(job), equip_(std::move(equip)), teams_(kMaxTeams) {}

  /// Collective over the job; a barrier of the bootstrap has passed since the memory was made.
  Result<void> make_predefined();

  /// The live team of this handle, or nullptr.
  [[nodiscard]] Team* find(int handle) const;

  /// Collective over `parent`. The handle of the new team that this PE is in, or -1 without one. Several teams may be
  /// made at once: all PEs of a map pass the same one, and maps do not overlap. PEs that make different calls are told
  /// so, all of them, and nothing is made. REQUIRES: all PEs of the map are in the parent.
  Result<int> split(Team& parent, const SplitRequest& request);

  /// Collective over the team. REQUIRES: not a predefined team.
  Result<void> destroy(int handle);
  /// Collective over the job: ends all teams of this PE, world last.
  Result<void> destroy_all();

 private:
  // Maps are of the members on this node.
  [[nodiscard]] int reserve_slot(const TeamMap& map) const;
  [[nodiscard]] bool try_to_reserve(const TeamMap& map, int slot) const;
  void give_back(const TeamMap& map, int slot) const;
  /// For the first member of the map: a slot for it, or why there is none. The other members of the map learn it from
  /// the parent's words. REQUIRES: a sync of the parent passes before it is read, and another before the next split.
  Result<void> offer_slot(Team& parent, const TeamMap& map) const;
  [[nodiscard]] std::uint64_t agree_on_count(const TeamMap& map, int slot) const;
  void clear_slot(int slot, std::uint64_t count) const;
  Team& add(const TeamMap& map, int slot, std::uint64_t count, int contexts, const TeamMap& world, std::uint32_t id);
  std::uint32_t next_id();
  void remove(int slot);
  /// False if it was so already.
  bool set_taken(int pe, int slot, bool taken) const;

  const Job& job_;
  Equip equip_;
  std::atomic<std::uint32_t> ids_{0};         // that this PE has given out
  std::vector<std::unique_ptr<Team>> teams_;  // by handle; of fixed size, so that threads do not meet in it
};

}  // namespace shmem
