// SPDX-License-Identifier: Apache-2.0
// A team: its PEs, and how they synchronise. A team is local (all members on this node) or spans nodes.
#pragma once

#include <optional>
#include <string>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/statistics.hpp"
#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/cores/core_group.hpp"
#include "shmem/layout/survival.hpp"
#include "shmem/layout/sync_view.hpp"
#include "shmem/layout/vote_result.hpp"
#include "shmem/team/eager.hpp"
#include "shmem/team/team_parts.hpp"

namespace shmem {

struct GbaMember;
class SpanningTeam;
class Survivors;

/// How a team's barriers were done since the team was created.
struct BarrierStats {
  std::uint64_t by_device = 0;
  std::uint64_t by_software = 0;
  [[nodiscard]] std::uint64_t total() const { return by_device + by_software; }
};

/// What a member knows about a team that it creates.
struct TeamPlan {
  TeamMap here{};           // the members on this node, by their numbers there; of a divided node, of this part
  TeamMap world{};          // all members, by their numbers in the world
  int slot = 0;             // agreed among the members
  std::uint64_t count = 0;  // the number of the last barrier in that slot, the same on all members
  int contexts = 0;         // that the program plans to create (shmem_team_config_t)
  std::uint32_t id = 0;     // by which members on several nodes find each other: see SpanningTeam
  TeamParts parts{};        // if there are several
};

/// One member's side of a team. Used by one thread at a time. The Job outlives it.
///
/// Life: created (software barriers work from then on), optionally given a group of the device, used, ended, destroyed.
class Team {
 public:
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  virtual ~Team() = default;

  // All members, by their numbers in the world.
  [[nodiscard]] const TeamMap& map() const { return world_; }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int size() const { return world_.size; }
  // The members on this node, by their numbers on the node; if a team divides a node (team_parts.hpp), those of this
  // PE's part.
  [[nodiscard]] const TeamMap& map_here() const { return map_; }
  [[nodiscard]] const SyncView& view() const { return view_; }
  /// nullptr if all members are on this node.
  [[nodiscard]] virtual SpanningTeam* spanning() { return nullptr; }
  /// The number of nodes that the members are on.
  [[nodiscard]] virtual int nodes() const { return 1; }
  /// A node counts as several because its members are not evenly spaced there (team_parts.hpp).
  [[nodiscard]] virtual bool divides_a_node() const { return false; }

  [[nodiscard]] int slot() const { return slot_; }
  [[nodiscard]] int contexts() const { return contexts_; }
  [[nodiscard]] virtual BarrierStats stats() const = 0;
  /// Its members are those on this node.
  [[nodiscard]] const BarrierStatistics& statistics() const { return statistics_; }
  /// "gba" if the next sync goes through the device. For a team on several nodes: how its nodes synchronise.
  [[nodiscard]] virtual const char* algorithm() const = 0;
  /// Why the team does not use the device, or "".
  [[nodiscard]] virtual const std::string& gba_reason() const = 0;
  /// The same, and why algorithm() is not the one that was chosen.
  [[nodiscard]] virtual std::string reason() const { return gba_reason(); }
  /// With SHMEM_INFO: before the team ends, the first member logs a line about its barriers.
  virtual void report() const = 0;
  /// The end of the line that is logged when the team is created. `choice`: why it has this software algorithm.
  [[nodiscard]] virtual std::string gba_text(const std::string& choice) const = 0;

  /// Collective. Returns once all members have called it. An Error names the missing members; the team cannot be used
  /// afterwards.
  virtual Result<void> sync() = 0;
  /// A sync of the members on this node only.
  virtual Result<void> sync_here() = 0;

  /// Collective, a sync of the team in software. From then on, barriers that do not go through the device use what
  /// member 0 chooses; before, a central counter.
  /// Members of other nodes follow their own member 0, but in BarrierChoice::nodes.
  virtual Result<void> agree_on_algorithm(const BarrierChoice& mine, const CollectiveChoice& collectives = {});
  /// The choice in force.
  [[nodiscard]] const BarrierChoice& barrier_choice() const { return software_; }
  /// Collective: this number of syncs of the members on this node in software, which do not count.
  Result<void> try_software(int syncs);
  /// Takes the choices of `other`, a team of the same members. Before the first barrier.
  void follow(const Team& other) {
    software_ = other.software_;
    collectives_ = other.collectives_;
  }
  /// How collectives move and combine data; the same on all members.
  [[nodiscard]] const CollectiveChoice& collectives() const { return collectives_; }
  /// Carries small data of the members on this node.
  [[nodiscard]] EagerChannel& eager() { return eager_; }

  // A sync in two phases, with work in between: arrive, then test or wait until it is over. All members make it so.
  // Until it is over the team's other collective calls are refused (device_or_resource_busy).
  /// Collective. An Error, without an effect, if one is open.
  virtual Result<void> arrive() = 0;
  /// This member has arrived, and does not yet know that all members have.
  [[nodiscard]] bool is_open() const { return open_; }
  /// REQUIRES: is_open(). True: the sync is over, and no longer open.
  virtual Result<bool> test() = 0;
  /// REQUIRES: is_open(). Waits for the end, up to `limit` instead of SHMEM_BARRIER_TIMEOUT. After timed_out the sync
  /// is still open and can be waited for again.
  virtual Result<void> wait(std::optional<std::chrono::nanoseconds> limit = {}) = 0;
  /// An Error if a sync is open or the team has failed. Checked before any other collective call.
  [[nodiscard]] Result<void> ready() const;
  /// After a collective call that failed: if the members lost each other in it, the team has failed.
  void note_failed_call() {
    if (!failed_ && eager_.has_failed()) {
      failed_ = eager_.error();
    }
    tell_of_failure();
  }
  /// ready() is no Error.
  [[nodiscard]] bool is_ready() const { return !open_ && !failed_; }
  [[nodiscard]] bool has_failed() const { return failed_.has_value(); }

  /// By which the members that are left of this team find each other.
  [[nodiscard]] virtual Survivors& survivors() = 0;
  /// A member has begun to shrink the team, and this one has not.
  [[nodiscard]] virtual bool is_being_shrunk() const { return first_to_shrink(view_).has_value(); }
  /// Not collective. The team has failed, if not before, and gives back what it has of the device.
  virtual void retire(const Error& why) {
    failed_ = failed_.value_or(why);
    open_ = false;
  }

  /// Collective, a sync of the team: have all members the same digest, and are all willing? Compares nodes only:
  /// members of one node compare in their memory. All get the first member's number.
  virtual Result<VoteResult> vote(std::uint64_t digest, bool willing, std::uint64_t number) = 0;
  /// Collective, a sync of the team: an Error on all members unless all make the same `call`.
  Result<void> agree_on_call(const TeamCall& call);
  /// Collective, a sync of the team, after agree_on_call: an Error on all members unless all can do what they agreed
  /// on; else the first member's `number`.
  Result<std::uint64_t> agree_on_outcome(const Result<void>& mine, std::uint64_t number);

  /// Collective. Asks for a group of the device for this team: all members get it or none; without one the team keeps
  /// software barriers. On several nodes, the leaders are the group's members: offload/inter_node_barrier.hpp. `ports`:
  /// how many PEs of the node, from the first one on, have a port. `member.port` outlives the team. A lost group is
  /// replaced as soon as the device has another one.
  virtual Result<void> use_gba(const GbaMember& member, int ports) = 0;
  /// Sets the reason why no member asks for a group.
  virtual void explain_no_gba(std::string reason) = 0;
  /// Collective. Gives the group back, if the team has one; software barriers from then on.
  virtual Result<void> dissolve() = 0;
  /// Collective. dissolve(), with a reason for gba_reason().
  Result<void> use_software(std::string reason);
  /// Collective, the last call: dissolve(), when all members have arrived.
  virtual Result<void> end() { return dissolve(); }

  /// Collective over all cores of all members. In software the cores share the work; through the device and between
  /// nodes core 0 does it. After an Error the team cannot be used.
  Result<void> sync_on(ThreadCore& core);

 protected:
  Team(const Job& job, const TeamPlan& plan);

  /// Called by core 0 in sync_on(). True: the barrier is entered and the cores share it. False: core 0 alone makes it
  /// with sync_by_core_zero().
  virtual bool enter_on_cores() = 0;
  virtual Result<void> sync_by_core_zero() = 0;

  /// Enters the next barrier and returns its number.
  std::uint64_t enter(bool split = false) {
    ++count_;
    if (split) {
      view_.mine().split.store(count_, std::memory_order_relaxed);
    }
    // For messages, and for the slot's next team after a sync of the parent. Release: pairs with BarrierMonitor.
    view_.mine().entered.store(count_, std::memory_order_release);
    statistics_.arrive(count_);
    return count_;
  }
  /// The entered barrier is over.
  void leave() { view_.mine().left.store(count_, std::memory_order_release); }
  /// A barrier of the members on this node.
  Result<void> software_sync();
  /// software_sync() as a sync in the statistics; nothing if there is only one member here.
  Result<void> counted_software_sync();
  /// The first half of a barrier of the members on this node, which enter() has entered: arrive_at_first_member().
  Result<void> arrive_at_leader();
  /// If the team has failed, members on other nodes learn that.
  virtual void tell_of_failure() {}
  Result<void> fail_for_good(Error error) {
    failed_ = std::move(error);
    return *failed_;
  }
  [[nodiscard]] BarrierName name_in_software(bool split) const;

  const Job& job_;
  const TeamMap map_;    // the members on this node
  const TeamMap world_;  // all members
  const int me_;         // in world_
  const int slot_;
  const int contexts_;
  const SyncView view_;
  BarrierChoice software_;
  CollectiveChoice collectives_{};
  EagerChannel eager_;
  std::uint64_t count_;        // of the last barrier entered, whatever its algorithm
  std::uint64_t choices_ = 0;  // agreed on
  BarrierStatistics statistics_;
  bool open_ = false;            // a sync in two phases
  std::optional<Error> failed_;  // of the last barrier: the team cannot be used any more

 private:
  [[nodiscard]] std::string describe_calls(std::size_t turn) const;
  [[nodiscard]] Error differing_calls(const TeamCall& mine, const std::string& calls) const;
  Result<void> share_sync(ThreadCore& core);
  /// A barrier of the members on this node. False: failed_ says why.
  bool make_software_sync();
  void let_takers_arrive() const;
  void fail_software_sync(std::errc error, std::string text);

  std::uint64_t calls_ = 0;  // of agree_on_call
  // For sync_on(); written by core 0.
  bool by_core_zero_ = false;
  Result<void> core_outcome_{};
};

/// A barrier of the cores of this PE.
Result<void> sync_cores(const Job& job, ThreadCore& core);

}  // namespace shmem
