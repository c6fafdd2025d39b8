// SPDX-License-Identifier: Apache-2.0
// A team: which PEs, where they synchronise, and how.
#pragma once

#include <string>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/gba_team.hpp"
#include "shmem/barrier/statistics.hpp"
#include "shmem/collective/carrier.hpp"
#include "shmem/cores/core_group.hpp"
#include "shmem/team/span.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// How a team's barriers were done, since it was made.
struct BarrierStats {
  std::uint64_t by_device = 0;
  std::uint64_t by_software = 0;
  [[nodiscard]] std::uint64_t total() const { return by_device + by_software; }
};

/// One member's side of a team. Used by one thread at a time. The Job outlives it.
///
/// Life: made (software barriers work from then on), optionally given a group of the device, used, dissolved,
/// destroyed.
class Team {
 public:
  /// `slot` is agreed among the members; `count` is the number of the last barrier there, the same on all of them;
  /// `contexts` is the number of contexts that the program means to make (shmem_team_config_t).
  Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count, int contexts = 0);
  /// Of one that is on several nodes, or not on all of them: `map` are the members here, `world` all of them. `id`: as
  /// Span.
  Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count, int contexts, const TeamMap& world,
       std::uint32_t id);

  // Of all members, by their numbers in the world.
  [[nodiscard]] const TeamMap& map() const { return world_; }
  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] int size() const { return world_.size; }
  // Of those on this node, by their numbers there.
  [[nodiscard]] const TeamMap& map_here() const { return map_; }
  [[nodiscard]] const SyncView& view() const { return view_; }
  /// nullptr: all members are on this node.
  [[nodiscard]] Span* span() const { return span_.get(); }

  [[nodiscard]] int slot() const { return slot_; }
  [[nodiscard]] int contexts() const { return contexts_; }
  [[nodiscard]] BarrierStats stats() const {
    return span_ ? BarrierStats{span_->by_device(), spanning_syncs_ - span_->by_device()}
                 : BarrierStats{statistics_.by_device(), statistics_.by_software()};
  }
  [[nodiscard]] const BarrierStatistics& statistics() const { return statistics_; }
  /// Of a team on several nodes "gba" if the nodes meet through it.
  [[nodiscard]] const char* algorithm() const {
    return (span_ ? span_->gba_active() : gba_.active()) ? "gba" : name_of(software_.algorithm);
  }
  /// Why the team does not use the device, or "".
  [[nodiscard]] const std::string& gba_reason() const { return span_ ? span_->gba_reason() : gba_.reason(); }

  /// With SHMEM_INFO: one line of the first member about the team's barriers, before the team ends.
  void report() const;

  /// Collective. Returns once all members have called it. An Error says for whom it waited; the team is of no use then.
  Result<void> sync();
  /// The same of the members on this node alone.
  Result<void> sync_here();

  /// Collective, a sync of the team in software: its barriers are by what member 0 chooses from then on, if they do not
  /// go through the device. Before, they are by a central counter.
  Result<void> agree_on_algorithm(const BarrierChoice& mine, const CollectiveChoice& collectives = {});
  /// As `other`, a team of the same members, before the first barrier.
  void follow(const Team& other) {
    software_ = other.software_;
    collectives_ = other.collectives_;
  }
  /// How collectives that move or combine data go; the same on all members.
  [[nodiscard]] const CollectiveChoice& collectives() const { return collectives_; }
  /// What carries their data where that is little.
  [[nodiscard]] Carrier& carrier() { return carrier_; }

  // A sync in two phases, so that work can stand between: arrive, then test or wait until it is over. All members make
  // it so. Until then the team's other collective calls are refused (device_or_resource_busy).
  /// Collective. An Error, and nothing is done, if one is open.
  Result<void> arrive();
  /// A sync is open: this member has arrived and does not know yet that all have.
  [[nodiscard]] bool is_open() const { return open_.has_value(); }
  /// REQUIRES: is_open(). True: it is over, and no more open.
  Result<bool> test();
  /// REQUIRES: is_open(). Waits for the end, at most `limit` in place of SHMEM_BARRIER_TIMEOUT. After timed_out it is
  /// still open and can be waited for again.
  Result<void> wait(std::optional<std::chrono::nanoseconds> limit = {});
  /// An Error if a sync is open: before any other collective call.
  [[nodiscard]] Result<void> ready() const;

  /// Collective, a sync of the team: do all give the same digest, and is none unwilling? Only members on other nodes
  /// are compared with: those of one node have memory for that. The first member's number is told to all.
  Result<Verdict> vote(std::uint64_t digest, bool willing, std::uint64_t number);
  /// Collective, a sync of the team: an Error on all members unless all make the same `call`.
  Result<void> agree_on_call(const TeamCall& call);
  /// Collective, a sync of the team, after agree_on_call: an Error on all members unless all can do what they agreed
  /// on; else what the first member gives as `number`.
  Result<std::uint64_t> agree_on_outcome(const Result<void>& mine, std::uint64_t number);

  /// Collective. Asks for a group of the device for this team, all or nobody; without one the team stays on software.
  /// On several nodes the first members of all of them are its members: barrier/gba_span.hpp.
  /// `ports`: that the PEs of the node have open, the first one's the first.
  /// `member.port` outlives the team. A group that is lost is replaced by another one as soon as that can be had.
  Result<void> use_gba(const GbaMember& member, int ports);
  /// Why nobody asks for a group for this team.
  void explain_no_gba(std::string reason) {
    span_ ? span_->explain_no_gba(std::move(reason)) : gba_.explain(std::move(reason));
  }
  /// Collective. Gives the group back, if there is one; software barriers from then on.
  Result<void> dissolve();
  /// Collective. As dissolve, and says why in gba_reason().
  Result<void> use_software(std::string reason);

  /// Collective over all cores of all members. In software the cores share the work; through the device core 0 does it.
  /// After an error the team is of no use.
  Result<void> sync_on(ThreadCore& core);

 private:
  /// The number of the barrier that this member now enters.
  std::uint64_t enter(bool split = false);
  [[nodiscard]] BarrierName name_in_software(bool split) const;
  [[nodiscard]] BarrierName name_as_served(bool split) const;
  void close();
  /// It is over.
  void leave() { view_.mine().left.store(count_, std::memory_order_release); }
  Result<void> software_sync();
  Result<void> spanning_sync();
  Result<void> fail_for_good(std::errc error, const BarrierWatch& watch);
  Result<void> gba_sync(std::uint64_t count);
  [[nodiscard]] std::string describe_calls(std::size_t turn) const;

  const Job& job_;
  TeamMap map_;    // those on this node
  TeamMap world_;  // all
  int me_;         // among all
  int slot_;
  int contexts_;
  SyncView view_;
  BarrierChoice software_;
  CollectiveChoice collectives_{};
  Carrier carrier_;
  std::uint64_t count_;        // of the last barrier entered, by whatever way
  std::uint64_t calls_ = 0;    // of agree_on_call
  std::uint64_t choices_ = 0;  // agreed on
  GbaTeam gba_;
  BarrierStatistics statistics_;
  struct Open {
    bool by_gba;
    BarrierWatch watch;  // of test()
  };
  std::optional<Open> open_;
  std::optional<Error> failed_;  // of the barrier after which there can be no other
  std::unique_ptr<Span> span_;
  std::uint64_t spanning_syncs_ = 0;
  // Of barriers on cores; written by core 0.
  bool by_core_zero_ = false;
  Result<void> core_outcome_{};  // of the device
};

/// Meets the other cores of this PE.
Result<void> meet_cores(const Job& job, ThreadCore& core);

}  // namespace shmem
