// SPDX-License-Identifier: Apache-2.0
// A team whose members are on several nodes: those of each node meet in memory, and the first of them meets those of
// the other nodes by messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "shmem/barrier/gba_switches.hpp"
#include "shmem/net/leader_group.hpp"
#include "shmem/team/sync_view.hpp"
#include "shmem/team/verdict.hpp"

namespace shmem {

/// The members of `world` that are on this node, by their numbers there, in the team's order. An Error if they are not
/// evenly spaced there: no such team can be made. REQUIRES: this PE is one of them.
Result<TeamMap> members_here(const Nodes& nodes, const TeamMap& world);

/// One member's side, used by one thread at a time. The Job outlives it.
class Span {
 public:
  /// The members meet by the number `id`, below 2^30, which no other team that any of them is in has at the time.
  /// `slot`: the team's on this node.
  Span(const Job& job, const TeamMap& world, const SyncView& here, std::uint32_t id, int slot);

  [[nodiscard]] std::uint32_t id() const { return id_; }
  [[nodiscard]] const TeamMap& world() const { return world_; }
  /// How many nodes there are.
  [[nodiscard]] int nodes() const { return static_cast<int>(firsts_.size()); }
  /// PEs of the world: the first member of each node, in the team's order.
  [[nodiscard]] const std::vector<int>& firsts() const { return firsts_; }
  /// Which of them is this node's.
  [[nodiscard]] int my_node() const { return my_node_; }
  /// This PE is the first member of its node. REQUIRED for leaders().
  [[nodiscard]] bool leads() const { return here_.me() == 0; }
  [[nodiscard]] LeaderGroup& leaders() { return *group_; }
  /// This member and those at the same place on the other nodes, in the order of the nodes: with one for each place,
  /// all members of a node can share its work between nodes. nullptr: not all nodes have as many members. The leaders()
  /// at the first.
  [[nodiscard]] LeaderGroup* rail() { return even_ ? group_.get() : nullptr; }
  /// All members, without regard to nodes.
  [[nodiscard]] LeaderGroup& everybody() { return everybody_; }

  /// A sync of the members on this node.
  using Meet = std::function<Result<void>()>;
  /// Collective over the team, and a sync of it. Each says what it is about to do, by a digest, and whether it can; the
  /// first member gives a number to all.
  Result<Verdict> vote(const Meet& meet, std::uint64_t digest, bool willing, std::uint64_t number);

  /// Asks for a group of the device for the leaders. Without one they meet by messages, and gba_reason() says why.
  Result<void> use_gba(const Meet& meet, const GbaMember& member);
  /// Gives the group back, if one was had.
  Result<void> give_up_gba(const Meet& meet);
  /// The leader's part of a sync. REQUIRES: leads().
  Result<void> meet_leaders();
  /// All members of the node, after such a sync and before the next one: what their leader says of it.
  void follow_gba();
  /// The next sync of this node's leader goes through the device: the same on all members on one switch.
  [[nodiscard]] bool gba_active() const { return gba_active_; }
  /// Why not, or "". Known to all members of a node.
  [[nodiscard]] const std::string& gba_reason() const { return gba_reason_; }
  /// Groups of devices that the nodes meet through; known to a node's first member.
  [[nodiscard]] int gba_groups() const { return gba_active_ && gba_ ? gba_->blocks() : 0; }
  void explain_no_gba(std::string reason) { gba_reason_ = std::move(reason); }
  /// Syncs in which the device released the leaders.
  [[nodiscard]] std::uint64_t by_device() const { return by_device_; }

 private:
  struct Ballot {
    std::uint64_t digest;
    std::uint64_t willing;
    std::uint64_t number;
    std::int64_t other;  // on its node
  };
  [[nodiscard]] Ballot count_here() const;
  Result<Verdict> count_all(const Ballot& here);
  /// Between two meetings of the node: the first member does `work`, and the others learn what came of it.
  Result<void> by_leader(const Meet& meet, const std::function<Result<void>()>& work);

  [[nodiscard]] GbaSpan::Means means(WaitPolicy policy) const;
  /// The leader tells its node how it met the others.
  void report_gba() const;

  const Job& job_;
  TeamMap world_;
  SyncView here_;
  std::uint32_t id_;
  std::vector<int> firsts_;
  int my_node_ = 0;
  bool even_ = true;                    // all nodes have as many members
  std::unique_ptr<LeaderGroup> group_;  // leaders() or rail()
  LeaderGroup everybody_;
  int slot_;
  std::unique_ptr<GbaSwitches> gba_;  // the leader's
  bool had_gba_ = false;
  bool gba_active_ = false;
  std::string gba_reason_;
  std::uint64_t by_device_ = 0;
};

}  // namespace shmem
