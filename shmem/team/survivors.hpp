// SPDX-License-Identifier: Apache-2.0
// The members that are left of a team agree on who they are.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shmem/layout/peers.hpp"
#include "shmem/layout/survival.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// The same on all members.
struct WhoIsLeft {
  std::vector<int> members;  // in their order
  std::uint32_t id;          // that one of the members gave
};

/// One member's side of the shrinks of one team. Used by one thread at a time, as the team is. A shrink has a number,
/// counted by each member.
///
/// Once the members have agreed on who is left, those of a node (those that synchronise in shared memory) agree on the
/// slot of the new team there, by one word (`made`): the member that changes it first has reserved and prepared the
/// slot before. So nothing has to be waited for after the votes: a member that dies then is a dead member of the new
/// team.
class Survivors {
 public:
  Survivors(const Job& job, const TeamMap& map, const SyncView& view, int slot, int members)
      : job_(job), map_(map), view_(view), slot_(slot), left_out_(static_cast<std::size_t>(members)) {}
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;
  virtual ~Survivors() = default;

  /// Collective over the members that live. `id`, for the new team, differs from all that other members give. Errors,
  /// which leave the others alone: state_not_recoverable this member was left out; operation_canceled the job was
  /// ended.
  virtual Result<WhoIsLeft> agree(std::uint32_t id) = 0;

  /// Makes the slot of the new team known, or learns that another member has: `reserve` reserves and prepares one, -1
  /// if none is free; `give_back` undoes that. The result is the same on all members of this node. REQUIRES: `left` are
  /// the members here, by their numbers in the view, that agree() has returned.
  template <typename Reserve, typename GiveBack>
  Result<int> agree_on_slot(const std::vector<int>& left, Reserve reserve, GiveBack give_back) {
    wait_for_turn(left);
    for (;;) {
      auto made = slot_made();
      if (!made || *made) {
        return made ? Result<int>(**made) : made.error();
      }
      const int slot = reserve();
      if (slot < 0) {
        offer_slot(slot);
      } else if (!offer_slot(slot)) {
        give_back(slot);
      }
    }
  }

  [[nodiscard]] bool has_left_out(int member) const { return left_out_[static_cast<std::size_t>(member)]; }
  /// The team has been shrunk.
  [[nodiscard]] bool shrunk() const { return shrunk_; }

 protected:
  [[nodiscard]] SurvivalWords& words(int member) const { return view_.member(member).survival; }
  /// By its number on this node.
  [[nodiscard]] bool has_died(int member) const { return is_gone(job_, map_.pe(member), view_.admissions()); }
  /// Begins the next shrink: the members on this node that wait notice it.
  void begin();
  /// All others are left out.
  void keep(const std::vector<int>& left);
  /// SHMEM_BARRIER_TIMEOUT, or if that is 0 SHMEM_BOOTSTRAP_TIMEOUT.
  [[nodiscard]] std::chrono::milliseconds limit() const;
  /// Why this member is not one of those that are left.
  [[nodiscard]] Error left_out() const;
  /// The job was ended, or another reason to give up.
  [[nodiscard]] Error given_up(std::errc error) const;
  void warn_of_late(const std::string& late) const;

  const Job& job_;
  const TeamMap& map_;  // the members on this node
  const SyncView& view_;
  const int slot_;
  std::uint64_t number_ = 0;  // of the shrink that is under way, or the last one

 private:
  /// Until there is a slot, or the members before this one in `left` have died or had their time: one makes the slot,
  /// as a rule, not all of them.
  void wait_for_turn(const std::vector<int>& left) const;
  [[nodiscard]] Result<std::optional<int>> slot_made() const;
  bool offer_slot(int slot) const;

  std::vector<bool> left_out_;  // by member
  bool shrunk_ = false;
};

/// For a team whose members are on one node.
///
/// Every member has a word for the verdict on it, in memory that outlives its process. A member that begins shrink n
/// says so (`begun`), waits until each of the others has begun n too, has died, or is too late, and then votes: for
/// each member it changes the verdict from an older number to "n, in" (it has begun n and lives) or "n, left out".
/// Then it reads all verdicts.
///
/// Why all members get the same set: a verdict of n is written once, because it is only changed from an older number,
/// by one atomic step, and no member begins n + 1 before it has read n. A member reads the verdicts after it has voted
/// on every member, so all of them are there, and no vote changes them any more. It does not matter what the voters
/// knew, nor who of them dies while voting: the others vote on every member as well, and wait for no voter.
///
/// Why no member waits without end: the wait for the others has a limit, and the votes wait for nothing. One vote on
/// any member is enough to end the waits of all: its voter has waited for every member.
///
/// Why a member that was left out does not come back: its verdict stays, and it reads it in its next call on the team
/// (was_left_out). It is not a member of the new team, whose words it never writes: those of the old team are not used
/// again (TeamTable::remove).
///
/// tests/model/survivors.pml checks this.
class LocalSurvivors final : public Survivors {
 public:
  LocalSurvivors(const Job& job, const TeamMap& map, const SyncView& view, int slot)
      : Survivors(job, map, view, slot, map.size) {}

  /// All get their own id: such a team has none.
  Result<WhoIsLeft> agree(std::uint32_t id) override;

 private:
  [[nodiscard]] bool has_begun(int member) const;
  [[nodiscard]] bool someone_has_voted() const;
  [[nodiscard]] bool all_here_or_dead() const;
  Result<void> wait_for_others() const;
  void vote() const;
  void log_late() const;
};

}  // namespace shmem
