// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/spanning_team.hpp"

#include <fmt/format.h>

#include "base/size_text.hpp"
#include "shmem/config/log.hpp"
#include "shmem/net/shrink_tags.hpp"

namespace shmem {
namespace {

// Ids of process groups. A team's own is below 2^30. The highest bits distinguish the other groups of a team, which may
// have the same PEs: these, and those of the device (spanning_team_device.cpp). Active sets have bit 2^30
// (runtime/job_network.cpp).
constexpr std::uint32_t kAmongLeaders = std::uint32_t{1} << 31;

std::vector<int> members_of(const TeamMap& map) {
  std::vector<int> pes;
  pes.reserve(static_cast<std::size_t>(map.size));
  for (int i = 0; i < map.size; ++i) {
    pes.push_back(map.pe(i));
  }
  return pes;
}

}  // namespace

SpanningTeam::SpanningTeam(const Job& job, const TeamPlan& plan)
    : Team(job, plan),
      id_(plan.id),
      parts_(plan.parts),
      my_node_(parts_.part_of(me_)),
      everybody_(*job.network, members_of(world_), me_, id_),
      survivors_(job, map_, view_, slot_, world_, me_, id_) {
  find_nodes();
}

void SpanningTeam::find_nodes() {
  const auto& members = parts_.members();
  for (const auto& theirs : members) {
    firsts_.push_back(world_.pe(theirs.front()));
    even_ = even_ && theirs.size() == members.front().size();
  }
  if (!leads() && !even_) {
    return;
  }
  std::vector<int> at_my_place;
  at_my_place.reserve(members.size());
  for (const auto& theirs : members) {
    at_my_place.push_back(world_.pe(theirs[static_cast<std::size_t>(view_.me())]));
  }
  // The same id for the groups of all places: no PE is in two.
  group_ = std::make_unique<ProcessGroup>(*job_.network, std::move(at_my_place), my_node_, id_ | kAmongLeaders);
}

// ---- Syncs ----

template <typename Work>
Result<std::uint64_t> SpanningTeam::sync_by(Work work) {
  if (map_.size > 1) {
    if (auto ok = arrive_at_leader(); !ok) {
      return ok.error();
    }
  }
  const Result<std::uint64_t> mine = leads() ? work() : std::uint64_t{0};
  // A member that has arrived has ended its eager calls, which is what kThis says.
  auto number = release_here(mine ? Result<void>{} : mine.error(), mine ? *mine : 0, EagerChannel::Begun::kThis);
  if (!number) {
    failed_ = number.error();
    return number;
  }
  const BarrierPath path = named_ ? BarrierPath::software(among_nodes()) : follow_gba();
  leave();
  statistics_.complete(count_, path);
  return number;
}

Result<void> SpanningTeam::sync() {
  if (open_ || failed_) {
    return ready();
  }
  enter();
  auto ok = sync_by_core_zero();
  if (!ok) [[unlikely]] {
    tell_of_failure();
  }
  return ok;
}

Result<void> SpanningTeam::sync_by_core_zero() {
  const auto done = sync_by([this]() -> Result<std::uint64_t> {
    const auto ok = sync_leaders();
    return ok ? Result<std::uint64_t>(0) : ok.error();
  });
  return done ? Result<void>{} : done.error();
}

Result<void> SpanningTeam::sync_on_by(ThreadCore& core, Algorithm named) {
  // The cores synchronise before the others read it, and before core 0 changes it.
  if (core.index() == 0) {
    named_ = named;
  }
  auto ok = sync_on(core);
  if (core.index() == 0) {
    named_.reset();
  }
  return ok;
}

Result<void> SpanningTeam::sync_here() {
  if (open_ || failed_) {
    return ready();
  }
  return map_.size > 1 ? software_sync() : Result<void>{};
}

// In two phases the barrier is among all members, by everybody_'s own algorithm: arriving must not wait for the members
// of this node.
Result<void> SpanningTeam::arrive() {
  auto ok = ready();
  if (ok) {
    ok = everybody_.start_barrier();
  }
  if (ok) {
    enter(true);
    open_ = true;
  }
  return ok;
}

void SpanningTeam::close() {
  open_ = false;
  leave();
  statistics_.complete(count_, BarrierPath::software(everybody_.barrier_choice().algorithm));
}

Result<bool> SpanningTeam::test() {
  auto over = everybody_.test_barrier();
  if (over && *over) {
    close();
  } else if (!over) {
    tell_of_failure();
  }
  return over;
}

Result<void> SpanningTeam::wait(std::optional<std::chrono::nanoseconds> limit) {
  auto ok = everybody_.finish_barrier(limit);
  if (ok) {
    close();
  } else {
    tell_of_failure();
  }
  return ok;
}

void SpanningTeam::report() const {
  if (job_.options.info && me_ == 0) {
    const BarrierStats done = stats();
    log_info(job_.options.info_json,
             {"statistics", slot_,
              fmt::format("team {} ({} PEs on {} nodes): the nodes synchronised {} through a GBA, {} by "
                          "messages: {}",
                          slot_, world_.size, nodes(), base::count(done.by_device, "time"),
                          base::count(done.by_software, "time"), statistics_.text())});
  }
}

Result<void> SpanningTeam::end() {
  auto ok = sync();
  return ok ? dissolve() : ok;
}

bool SpanningTeam::is_being_shrunk() const {
  return Team::is_being_shrunk() || job_.network->has_come(shrink_begun(id_));
}

bool SpanningTeam::is_given_up() const {
  return Team::is_being_shrunk() || job_.network->has_come(team_given_up(id_)) || (job_.given_up && job_.given_up());
}

/// A PE finds the deaths on its own node, and of those that it has communicated with. Without being told, the leader of
/// another node would wait for the leader of the dead PE's node, which does not come any more, until the shrink.
void SpanningTeam::tell_of_failure() {
  const bool is_lost = failed_ || everybody_.has_failed() || (group_ && group_->has_failed());
  const bool goes_on = job_.first_without_survive < 0 && job_.ended() == std::errc{};
  if (is_lost && goes_on && !is_retired_) {
    survivors_.tell_of_failure();
  }
}

void SpanningTeam::retire(const Error& why) {
  Team::retire(why);
  is_retired_ = true;
  had_gba_ = gba_active_ = votes_by_gba_ = false;
  refusals_.reset();
  gba_.reset();
}

// ---- Votes ----

SpanningTeam::Ballot SpanningTeam::count_here() const {
  const NodeVote& first = view_.member(0).node_vote;
  Ballot all{.digest = first.digest, .willing = first.willing, .number = first.number, .other = -1};
  for (int i = 1; i < view_.size() && all.other < 0; ++i) {
    const NodeVote& theirs = view_.member(i).node_vote;
    if (theirs.digest != first.digest || theirs.willing == 0) {
      all.other = job_.nodes.world(map_.pe(i));
    }
    all.willing = all.willing & theirs.willing;
  }
  if (first.willing == 0) {
    all.other = firsts_[static_cast<std::size_t>(my_node_)];
  }
  return all;
}

Result<VoteResult> SpanningTeam::count_all(const Ballot& here) {
  const auto all = group_->allgather(here);
  if (!all) {
    return all.error();
  }
  VoteResult verdict{.number = all->front().number};
  for (std::size_t node = 0; node < all->size(); ++node) {
    const Ballot& theirs = (*all)[node];
    const bool alike = theirs.digest == all->front().digest && (theirs.other < 0 || theirs.willing == 0);
    verdict.alike = verdict.alike && alike;
    verdict.willing = verdict.willing && theirs.willing != 0;
    if (verdict.other < 0 && theirs.other >= 0) {
      verdict.other = static_cast<int>(theirs.other);
    }
    if (verdict.other < 0 && !alike) {
      verdict.other = firsts_[node];
    }
  }
  return verdict;
}

Result<void> SpanningTeam::count_votes() {
  const auto verdict = count_all(count_here());
  if (!verdict) {
    return verdict.error();
  }
  NodeVote& first = view_.member(0).node_vote;
  first.alike = verdict->alike ? 1 : 0;
  first.all_willing = verdict->willing ? 1 : 0;
  first.other = verdict->other;
  first.given = verdict->number;
  return {};
}

Result<VoteResult> SpanningTeam::vote(std::uint64_t digest, bool willing, std::uint64_t number) {
  if (auto ok = ready(); !ok) {
    return ok.error();
  }
  NodeVote& mine = view_.mine().node_vote;
  mine.digest = digest;
  mine.willing = willing ? 1 : 0;
  mine.number = number;
  if (auto ok = by_leader([this] { return count_votes(); }); !ok) {
    return ok.error();
  }
  const NodeVote& first = view_.member(0).node_vote;
  return VoteResult{.alike = first.alike != 0,
                    .willing = first.all_willing != 0,
                    .other = static_cast<int>(first.other),
                    .number = first.given};
}

Result<VoteResult> SpanningTeam::sync_willing(bool willing) {
  if (auto ok = ready(); !ok) {
    return ok.error();
  }
  if (!votes_by_gba_) {
    return vote(0, willing, 0);
  }
  view_.mine().node_vote.willing = willing ? 1 : 0;
  enter();
  const auto refused = sync_by([this]() -> Result<std::uint64_t> {
    int refuses = -1;
    for (int i = 0; i < view_.size() && refuses < 0; ++i) {
      refuses = view_.member(i).node_vote.willing == 0 ? job_.nodes.world(map_.pe(i)) : -1;
    }
    const auto other = refusals_->vote(refuses, [this] { return sync_leaders(); });
    return other ? Result<std::uint64_t>(static_cast<std::uint64_t>(*other + 1)) : other.error();
  });
  if (!refused) {
    return refused.error();
  }
  return VoteResult{.willing = *refused == 0, .other = static_cast<int>(*refused) - 1};
}

// ---- The algorithm ----

Result<void> SpanningTeam::agree_on_algorithm(const BarrierChoice& mine, const CollectiveChoice& collectives) {
  if (auto ok = Team::agree_on_algorithm(mine, collectives); !ok || software_.trial) {
    return ok;
  }
  // All members of this node have read the choice when their leader has gathered them.
  NodesChoice& agreed = view_.member(0).choice[choices_ % 2].barrier.nodes;
  auto ok = sync_around([&] { return group_->broadcast(&agreed, sizeof agreed, 0); });
  if (!ok) {
    return fail_for_good(ok.error());
  }
  software_.nodes = agreed;
  if (group_) {
    group_->set_barrier(agreed);
  }
  return {};
}

std::string SpanningTeam::reason() const {
  const std::string note = gba_active_ ? "" : message_note(software_.nodes.algorithm);
  return gba_reason_ + (gba_reason_.empty() || note.empty() ? "" : "; ") + note;
}

}  // namespace shmem
