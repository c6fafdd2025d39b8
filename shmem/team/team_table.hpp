// SPDX-License-Identifier: Apache-2.0
// The live teams of this PE, by slot, and the creation of new ones.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/zero_array.hpp"
#include "shmem/team/admission.hpp"
#include "shmem/team/team.hpp"
#include "shmem/team/team_slots.hpp"

namespace shmem {

constexpr int kWorldTeam = 0;   // SHMEM_TEAM_WORLD
constexpr int kSharedTeam = 1;  // SHMEM_TEAM_SHARED

/// A PE's request to split a team.
struct SplitRequest {
  TeamCall call{};                 // as the program made it; the same on all PEs of the parent
  std::optional<Error> refusal{};  // the answer to a call that is invalid here; then it fails on all PEs
  std::optional<TeamMap> map{};    // the new team of this PE, by numbers of the world
  int contexts = 0;
};

/// The ids that a PE gives to teams on several nodes. Different PEs give different ones; a PE repeats its own after
/// 2^30 of them divided by the number of PEs (rounded up to a power of two).
class TeamIds {
 public:
  static constexpr int kBits = 30;  // groups mark their messages by the others: team/spanning_team.cpp

  /// `bits`: of all PEs' ids.
  TeamIds(int pe, int pes, int bits = kBits)
      : own_bits_(bits - static_cast<int>(std::bit_width(static_cast<std::uint32_t>(pes - 1)))),
        mine_(static_cast<std::uint32_t>(pe) << own_bits_) {}

  struct Id {
    std::uint32_t number;
    bool repeated;  // it was given before, so a live team may have it
  };
  /// Not 0, which is the world's. Thread-safe.
  Id next() {
    for (;;) {
      const std::uint64_t own = given_.fetch_add(1, std::memory_order_relaxed) + 1;
      const std::uint32_t id = mine_ | static_cast<std::uint32_t>(own % own_ids());
      if (id != 0) {
        return {id, own > own_ids()};
      }
    }
  }
  /// How many a PE has.
  [[nodiscard]] std::uint64_t own_ids() const { return std::uint64_t{1} << own_bits_; }

 private:
  int own_bits_;
  std::uint32_t mine_;
  std::atomic<std::uint64_t> given_{0};
};

/// All members on a node agree on the slot of their team. Several threads at once may find teams, and create and end
/// teams of different parents. A team that one thread ends is not used by another.
class TeamTable {
 public:
  /// Gives a new team its barriers; collective over the team.
  using Equip = std::function<Result<void>(Team&)>;

  TeamTable(const Job& job, Equip equip, int id_bits = TeamIds::kBits)
      : job_(job),
        slots_(job),
        admission_(job),
        equip_(std::move(equip)),
        ids_(job.world_me(), job.world_size(), id_bits) {}
  TeamTable(const TeamTable&) = delete;
  TeamTable& operator=(const TeamTable&) = delete;
  ~TeamTable();

  /// Collective over the job, after a barrier of the bootstrap since the memory was created.
  Result<void> make_predefined();

  /// The live team in this slot, or nullptr. -1 becomes a slot that does not exist.
  [[nodiscard]] Team* find(std::size_t slot) const { return slot < std::size_t{kMaxTeams} ? teams_[slot] : nullptr; }

  /// Collective over `parent`. Returns the slot of this PE's new team, or -1 without one. Several teams can be
  /// created at once: all PEs of a map pass the same map, and maps do not overlap. If PEs make different calls, all of
  /// them get an Error and no team is created. REQUIRES: all PEs of the map are in the parent.
  Result<int> split(Team& parent, const SplitRequest& request);

  /// Collective over the members that live: the slot of a new team of those that are left, the same on all of them. A
  /// member that dies after they have agreed is a dead member of the new team. Errors: those of Survivors::agree();
  /// no_buffer_space, on all of them.
  Result<int> shrink(Team& team);
  /// The same, with the processes that wait for places of PEs; waits until there are `processes` of them. In a job on
  /// one node. REQUIRES: the home().
  Result<int> grow(Team& team, int processes);
  /// Called by a process that takes the place of a PE, instead of make_predefined(): its predefined teams have failed.
  void make_lost();
  /// Called by it after that: the slot of the team that the others have made by grow(). An Error if they do not call
  /// it.
  Result<int> join();
  /// The members of a new team: of members start, start + stride, ... of a parent.
  TeamMap part_of(const TeamMap& parent, int start, int stride, int size);
  /// Stands for the job in calls that are collective over it: the world, or what is left of it.
  [[nodiscard]] Team& home() const { return *teams_[static_cast<std::size_t>(home_.load(std::memory_order_relaxed))]; }
  [[nodiscard]] bool home_is_world() const { return home_.load(std::memory_order_relaxed) == kWorldTeam; }

  /// Collective over the team. REQUIRES: neither a predefined team nor the home().
  Result<void> destroy(int slot);
  /// Collective over the job: ends all teams of this PE, the home() last.
  Result<void> destroy_all();

 private:
  /// How the members of a map, of which this PE is one, make a team. No slot yet. The same on all of them.
  [[nodiscard]] TeamPlan plan(Team& parent, const TeamMap& map) const;
  /// Called by the first member of the map: reserves a slot, and stores it in the parent's words for the other members.
  /// REQUIRES: a sync of the parent before it is read, and another one before the next split.
  Result<void> offer_slot(Team& parent, const TeamMap& map) const;
  Team& add(const TeamPlan& plan);
  /// A number for agree_on_outcome: the next id, and whether it is repeated.
  std::uint64_t propose_id();
  /// Collective over the parent: what all of them got from propose_id() of one of them becomes an id that no live team
  /// of a member of `plan` has. Without a plan, this PE is in no new team.
  Result<std::uint32_t> settle_id(Team& parent, const std::optional<TeamPlan>& plan, std::uint64_t proposed);
  [[nodiscard]] bool is_in_use(std::uint32_t id) const;
  /// Keeps a list of them unless they are evenly spaced. Thread-safe.
  TeamMap map_of(std::vector<int> pes);
  /// How these members of `team` make a team. No slot yet.
  [[nodiscard]] TeamPlan plan_of_rest(Team& team, const std::vector<int>& members);
  enum class Admits { kNo, kYes };
  Result<int> regroup(Team& team, Admits admits);
  Result<int> agree_on_slot(Survivors& survivors, const std::vector<int>& left_here, const TeamMap& here,
                            Admits admits);
  /// The end of regroup() and join().
  int add_what_is_left(const Team& team, TeamPlan plan);
  void remove(int slot);

  const Job& job_;
  TeamSlots slots_;
  Admission admission_;
  Equip equip_;
  TeamIds ids_;
  base::ZeroArray<std::atomic<std::uint32_t>> live_ids_{kMaxTeams};  // by slot
  base::ZeroArray<Team*> teams_{kMaxTeams};  // by slot, owned; of fixed size, so that threads do not interfere
  std::mutex lists_mutex_;
  std::set<std::vector<int>> lists_;   // of all TeamMaps that have been made, each once
  std::atomic<int> home_{kWorldTeam};  // relaxed: threads that wait find it sooner or later
};

}  // namespace shmem
