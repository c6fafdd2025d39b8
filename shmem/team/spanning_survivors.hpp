// SPDX-License-Identifier: Apache-2.0
// The members that are left of a team on several nodes agree on who they are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "shmem/net/network.hpp"
#include "shmem/team/shrink_messages.hpp"
#include "shmem/team/survivors.hpp"

namespace shmem {

/// No memory outlives a node, so the members agree by messages, each with each of the others, on its node too.
///
/// A member that begins a shrink tells all others, with the members that it has lost. That ends their waits in barriers
/// of the team (net/shrink_tags.hpp). It waits until each of the others has begun too, is gone (its process on this
/// node has ended, or the network has lost it), or is too late. Then it makes a proposal: itself and the members that
/// have begun and are not gone. If one of them says that it has lost another one, that other one is left out: it has
/// probably died since it began. If both say so, the network between them is cut, and the second one is left out.
/// If a proposal of another member has come meanwhile, that is this member's own: the one that made it has heard of
/// all, and this one perhaps not.
///
/// Then each member in turn, in the order of the team, sends its proposal to all; the others wait for that, unless this
/// member is gone, and make it their own. After the last turn all have the same one.
///
/// Why all members get the same set: take a member that lives and that no other one holds for gone. In its turn all get
/// its proposal, and from then on there is no other one to send. It does not matter whose turns failed, or reached only
/// some, before it or after it. REQUIRES: there is such a member. A network that falls apart into two halves has one in
/// each of them, and each half goes on by itself.
///
/// Why no member waits without end: the wait for the others, and each wait for a member in its turn, has a limit. The
/// first proposal ends the first wait: its sender has waited for every member. A member that is done withdraws nothing
/// that another one of the new team waits for.
///
/// Why a member that was left out does not come back: the proposals are sent to it too, and it takes part in no other
/// agreement. The id of the new team is a part of the proposal, so its messages are for no other team.
///
/// tests/model/survivors_on_nodes.pml checks this.
class SpanningSurvivors final : public Survivors {
 public:
  /// `world` and `me`: of the team; `team`: its id. They outlive this.
  SpanningSurvivors(const Job& job, const TeamMap& map, const SyncView& view, int slot, const TeamMap& world, int me,
                    std::uint32_t team)
      : Survivors(job, map, view, slot, world.size),
        world_(world),
        me_(me),
        team_(team),
        gone_(static_cast<std::size_t>(world.size)) {}

  Result<WhoIsLeft> agree(std::uint32_t id) override;

  /// A call of this member on the team has failed: the waits of members on other nodes end, too. Once; waits for
  /// nothing.
  void tell_of_failure();

 private:
  /// The messages of one shrink. Those under way to members that are late stay until the next one.
  struct Shrink {
    Shrink(Network& network, const TeamMap& world, std::uint32_t team, std::uint64_t number);
    ShrinkMessages begun, proposals;
    ShrinkMessages failures;  // that others have sent before
  };
  using Proposal = std::vector<std::uint64_t>;  // the id, then a bit for each member

  [[nodiscard]] bool is_gone(int member) const { return gone_[static_cast<std::size_t>(member)]; }
  void tell_of_begin();
  [[nodiscard]] Result<void> wait_for_others();
  [[nodiscard]] Proposal propose(std::uint32_t id) const;
  [[nodiscard]] Result<void> take_turn(int member, Proposal& proposal);
  [[nodiscard]] bool has_lost(int member, int other) const;
  /// Waits until the members of the new team have this one's proposal.
  void finish_sending(const Proposal& proposal);
  void look_for_deaths();
  /// Looks at the messages, and waits until done().
  template <typename Done>
  [[nodiscard]] std::errc wait(std::chrono::milliseconds limit, Done done);

  const TeamMap& world_;
  const int me_;
  const std::uint32_t team_;
  std::vector<bool> gone_;  // this member waits no more for them
  std::unique_ptr<Shrink> shrink_;
  std::optional<ShrinkMessages> failure_;
};

}  // namespace shmem
