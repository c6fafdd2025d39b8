// SPDX-License-Identifier: Apache-2.0
// A team whose members are on several nodes. A barrier has three parts: the members of each node arrive in shared
// memory at the first of them, its leader; the leaders synchronise, by messages or through the device; each leader
// releases its node. The arrival and the messages are those of the chosen algorithm (barrier/algorithms.hpp,
// net/message_barrier.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shmem/net/process_group.hpp"
#include "shmem/offload/gba_switches.hpp"
#include "shmem/team/refusals.hpp"
#include "shmem/team/spanning_survivors.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

/// "A node" is a part of the team here (team_parts.hpp): a node with members that are not evenly spaced counts as
/// several. Such a team does not use the device.
///
/// The members find each other by the plan's `id`, below 2^30. No other team of any of them has the same id at the
/// time.
class SpanningTeam final : public Team {
 public:
  SpanningTeam(const Job& job, const TeamPlan& plan);

  [[nodiscard]] SpanningTeam* spanning() override { return this; }
  [[nodiscard]] int nodes() const override { return static_cast<int>(firsts_.size()); }
  /// PEs of the world: the first member of each node, in the team's order.
  [[nodiscard]] const std::vector<int>& firsts() const { return firsts_; }
  /// The members of each node, in the order of firsts().
  [[nodiscard]] const std::vector<std::vector<int>>& by_node() const { return parts_.members(); }
  /// The index in firsts() of a member's node.
  [[nodiscard]] int node_of(int member) const { return parts_.part_of(member); }
  /// Of this one.
  [[nodiscard]] int my_node() const { return my_node_; }
  [[nodiscard]] bool divides_a_node() const override { return parts_.divide_a_node(); }
  /// This PE is the leader of its node: required for leaders().
  [[nodiscard]] bool leads() const { return view_.me() == 0; }
  [[nodiscard]] ProcessGroup& leaders() { return *group_; }
  /// This member and the members at the same place on the other nodes, in the order of the nodes. With one group per
  /// place, all members of a node share its work between nodes. At the first place, the same as leaders(). nullptr if
  /// the nodes have different numbers of members.
  [[nodiscard]] ProcessGroup* rail() { return even_ ? group_.get() : nullptr; }
  /// All members, on whatever node.
  [[nodiscard]] ProcessGroup& everybody() { return everybody_; }

  [[nodiscard]] BarrierStats stats() const override {
    return {.by_device = statistics_.by_device(), .by_software = statistics_.by_software()};
  }
  [[nodiscard]] const char* algorithm() const override {
    return gba_active_ && !named_ ? "gba" : name_of(among_nodes());
  }
  [[nodiscard]] const std::string& gba_reason() const override { return gba_reason_; }
  [[nodiscard]] std::string reason() const override;
  [[nodiscard]] std::string gba_text(const std::string& choice) const override;
  void report() const override;

  Result<void> sync() override;
  Result<void> sync_here() override;
  /// sync_on(), in which the nodes synchronise by this algorithm and not through the device. All cores of all members
  /// name the same one.
  Result<void> sync_on_by(ThreadCore& core, Algorithm named);
  Result<void> arrive() override;
  Result<bool> test() override;
  Result<void> wait(std::optional<std::chrono::nanoseconds> limit = {}) override;
  Result<VoteResult> vote(std::uint64_t digest, bool willing, std::uint64_t number) override;
  /// Collective, a sync of the team: are all willing? With a device, a barrier through it; without, a vote.
  Result<VoteResult> sync_willing(bool willing);

  /// Leaders follow the first one in BarrierChoice::nodes.
  Result<void> agree_on_algorithm(const BarrierChoice& mine, const CollectiveChoice& collectives) override;

  Result<void> use_gba(const GbaMember& member, int ports) override;
  void explain_no_gba(std::string reason) override { gba_reason_ = std::move(reason); }
  Result<void> dissolve() override;
  Result<void> end() override;

  [[nodiscard]] Survivors& survivors() override { return survivors_; }
  [[nodiscard]] bool is_being_shrunk() const override;
  /// The same, or a call of a member on another node has failed.
  [[nodiscard]] bool is_given_up() const;
  void retire(const Error& why) override;

  // The members on this node before and after the work of their leader. All of them make the same calls in the same
  // order.
  /// Each member arrives with a number. The leader waits for all, sees what they stored before, and gets the least
  /// number. The others do not wait for all, and get a number without a meaning.
  Result<std::uint64_t> gather_least_here(std::uint64_t mine);
  Result<void> gather_here() {
    const auto least = gather_least_here(0);
    return least ? Result<void>{} : least.error();
  }
  /// The same; the leader gets the numbers of all, by member on this node. `all` of the others is not used.
  Result<void> gather_here(std::uint64_t mine, std::span<std::uint64_t> all);
  /// The leader passes on the result of its work, with a number. The others wait for that, and see what the leader
  /// stored before. `begun`: by the arrival of all, which was no eager call.
  Result<std::uint64_t> release_here(const Result<void>& done, std::uint64_t number = 0,
                                     EagerChannel::Begun begun = EagerChannel::Begun::kUnknown);
  /// A sync of the node's members. If the work of one of them failed, the call fails for all.
  Result<void> sync_results_here(const Result<void>& mine = {});
  /// A sync of the node's members, in the middle of which the leader does `work`.
  template <typename Work>
  Result<void> sync_around(Work work) {
    if (auto ok = gather_here(); !ok) {
      return ok;
    }
    const auto over = release_here(leads() ? work() : Result<void>{});
    return over ? Result<void>{} : over.error();
  }

 private:
  struct Ballot {
    std::uint64_t digest;
    std::uint64_t willing;
    std::uint64_t number;
    std::int64_t other;  // a PE that differs; -1: none
  };
  void find_nodes();
  [[nodiscard]] Ballot count_here() const;
  Result<VoteResult> count_all(const Ballot& here);
  Result<void> count_votes();
  /// The leader does `work` between two syncs of the node; all members get the outcome.
  Result<void> by_leader(const std::function<Result<void>()>& work);
  [[nodiscard]] Error leader_failed() const;

  bool enter_on_cores() override {
    enter();
    return false;
  }
  Result<void> sync_by_core_zero() override;
  void tell_of_failure() override;

  /// A sync that has been entered, in which the leaders do work(), a barrier among them. All get the number that the
  /// leader of their node returns.
  template <typename Work>
  Result<std::uint64_t> sync_by(Work work);

  [[nodiscard]] InterNodeBarrier::Means means(WaitPolicy policy) const;
  /// The leader's part of a sync.
  Result<void> sync_leaders();
  Result<void> sync_leaders_by(Algorithm named);
  Result<void> make_refusals();
  /// The open sync is over.
  void close();
  /// The leader stores for its node how the leaders synchronised.
  void report_gba() const;
  void log_gba_change(bool before) const;
  /// Called by all members of the node, after a sync and before the next one: reads what the leader stored. Returns how
  /// the sync was made.
  BarrierPath follow_gba();
  /// By messages.
  [[nodiscard]] Algorithm among_nodes() const { return by_messages(named_.value_or(software_.nodes.algorithm)); }

  /// gather_here() if there are NeighbourLevels.
  Result<void> gather_in_groups(std::uint64_t mine, std::span<std::uint64_t> all);
  static std::uint64_t number_of(const EagerChannel::Given& given);

  const std::uint32_t id_;
  const TeamParts parts_;
  const int my_node_;
  std::vector<int> firsts_;
  bool even_ = true;                     // all nodes have the same number of members
  std::unique_ptr<ProcessGroup> group_;  // leaders() or rail()
  ProcessGroup everybody_;
  std::unique_ptr<GbaSwitches> gba_;  // the leader's
  std::optional<Refusals> refusals_;  // the leader's
  bool votes_by_gba_ = false;         // the leaders have refusals_
  bool had_gba_ = false;
  std::optional<Algorithm> named_;  // of the sync that is under way, if it was asked for; written by core 0
  bool gba_active_ = false;         // the next sync of this node's leader goes through the device
  std::string gba_reason_;          // known to all members of a node
  SpanningSurvivors survivors_;
  bool is_retired_ = false;
};

}  // namespace shmem
