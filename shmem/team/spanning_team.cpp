// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/spanning_team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "shmem/config/log.hpp"
#include "shmem/layout/peers.hpp"

namespace shmem {
namespace {

// Ids of process groups. A team's own is below 2^30. The highest bits distinguish the other groups of a team, which may
// have the same PEs. Active sets have bit 2^30 (runtime/job_network.cpp).
constexpr std::uint32_t kAmongLeaders = std::uint32_t{1} << 31;
// The same for both kinds of groups: no two PEs are in both, and messages are matched by sender, too.
constexpr std::uint32_t kOfBlocks = std::uint32_t{3} << 30;

/// What a leader stores for its node between two syncs.
enum Outcome : std::uint32_t { kDone, kFailed };

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
      everybody_(*job.network, members_of(world_), me_, id_) {
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
  return sync_by_core_zero();
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
  }
  return over;
}

Result<void> SpanningTeam::wait(std::optional<std::chrono::nanoseconds> limit) {
  auto ok = everybody_.finish_barrier(limit);
  if (ok) {
    close();
  }
  return ok;
}

void SpanningTeam::report() const {
  if (job_.options.info && me_ == 0) {
    const BarrierStats done = stats();
    log_info(job_.options.info_json,
             {"statistics", slot_,
              fmt::format("team {} ({} PEs on {} nodes): the nodes synchronised {} times through a GBA, {} times by "
                          "messages: {}",
                          slot_, world_.size, nodes(), done.by_device, done.by_software, statistics_.text())});
  }
}

Result<void> SpanningTeam::end() {
  auto ok = sync();
  return ok ? dissolve() : ok;
}

// ---- The members on this node ----

std::uint64_t SpanningTeam::number_of(const EagerChannel::Given& given) {
  std::uint64_t number = 0;
  std::memcpy(&number, given.data, sizeof number);
  return number;
}

Result<std::uint64_t> SpanningTeam::gather_least_here(std::uint64_t mine) {
  EagerChannel::Numbers numbers{mine};
  if (map_.size > 1 && !eager_.least(numbers, /*for_all=*/false)) {
    return eager_.error();
  }
  return numbers.front();
}

Result<void> SpanningTeam::gather_here(std::uint64_t mine, std::span<std::uint64_t> all) {
  if (eager_.levels() != nullptr) {
    return gather_in_groups(mine, all);
  }
  if (leads()) {
    all.front() = mine;
  }
  if (map_.size == 1) {
    return {};
  }
  if (!eager_.begin() || (!leads() && !eager_.give(&mine, sizeof mine))) {
    return eager_.error();
  }
  for (int member = 1; leads() && member < map_.size; ++member) {
    const auto theirs = eager_.take(member);
    if (!theirs) {
      return eager_.error();
    }
    all[static_cast<std::size_t>(member)] = number_of(theirs);
  }
  eager_.end(leads() ? EagerChannel::Begun::kThis : EagerChannel::Begun::kUnknown);
  return {};
}

/// In two calls: the leader of each group takes the numbers of its group, and gives them.
Result<void> SpanningTeam::gather_in_groups(std::uint64_t mine, std::span<std::uint64_t> all) {
  const NeighbourLevels& levels = *eager_.levels();
  const NeighbourLevels::Group group = levels.group(0);
  std::array<std::uint64_t, NeighbourLevels::kMostInGroup> numbers{};
  std::size_t count = 0;
  bool ok = eager_.begin() && eager_.give(&mine, sizeof mine);
  for (int member = group.begin; ok && levels.leads_unit(1) && member < group.end; ++member) {
    const auto theirs = eager_.take(member);
    ok = static_cast<bool>(theirs);
    numbers[count++] = ok ? number_of(theirs) : 0;
  }
  if (ok) {
    eager_.end(EagerChannel::Begun::kUnknown);
    ok = eager_.begin() && eager_.give(numbers.data(), count * sizeof mine);
  }
  for (int unit = 0; ok && leads() && unit < levels.units(1); ++unit) {
    const auto theirs = eager_.take(levels.first(1, unit));
    ok = static_cast<bool>(theirs);
    if (ok) {
      std::memcpy(&all[static_cast<std::size_t>(levels.first(1, unit))], theirs.data, theirs.size);
    }
  }
  if (!ok) {
    return eager_.error();
  }
  eager_.end(leads() ? EagerChannel::before(1) : EagerChannel::Begun::kUnknown);
  return {};
}

Error SpanningTeam::leader_failed() const {
  const int leader = job_.nodes.number(firsts_[static_cast<std::size_t>(my_node_)]);
  return fail(std::errc::host_unreachable,
              fmt::format("shmem: PE {}: {}, the leader of this node, could not reach the other nodes; see its message",
                          job_.world_me(), describe_pe(job_, leader)));
}

Result<std::uint64_t> SpanningTeam::release_here(const Result<void>& done, std::uint64_t number,
                                                 EagerChannel::Begun begun) {
  if (map_.size > 1) {
    // No bytes: the work failed.
    if (!eager_.begin() || (leads() && !eager_.give(&number, done ? sizeof number : 0))) {
      return done ? eager_.error() : done.error();
    }
    if (!leads()) {
      const auto given = eager_.take(0);
      if (!given) {
        return eager_.error();
      }
      if (given.size == 0) {
        eager_.end(EagerChannel::Begun::kUnknown);
        return leader_failed();
      }
      number = number_of(given);
    }
    eager_.end(begun);
  }
  if (!done) {
    return done.error();
  }
  return number;
}

Result<void> SpanningTeam::sync_results_here(const Result<void>& mine) {
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  const auto failed = gather_least_here(mine ? kNone : static_cast<std::uint64_t>(view_.me()));
  if (!failed) {
    return mine ? failed.error() : mine;
  }
  Result<void> all = mine;
  if (leads() && all && *failed != kNone) {
    all = fail(
        std::errc::host_unreachable,
        fmt::format("shmem: PE {}: member {} of the team on this node could not reach the other nodes; see its message",
                    job_.world_me(), *failed));
  }
  const auto released = release_here(all);
  if (!mine || released) {
    return mine;
  }
  return released.error();
}

// ---- Votes ----

template <typename Work>
Result<void> SpanningTeam::by_leader(Work work) {
  if (auto ok = sync_here(); !ok) {
    return ok;
  }
  std::uint32_t& outcome = view_.member(0).node_vote.outcome;
  Result<void> done;
  if (leads()) {
    done = work();
    outcome = done ? kDone : kFailed;
  }
  if (auto ok = sync_here(); !ok) {
    return done ? ok : done;
  }
  if (!done || outcome == kDone) {
    return done;
  }
  return leader_failed();
}

SpanningTeam::Ballot SpanningTeam::count_here() const {
  const NodeVote& first = view_.member(0).node_vote;
  Ballot all{.digest = first.digest, .willing = first.willing, .number = first.number, .other = -1};
  for (int i = 1; i < view_.size() && all.other < 0; ++i) {
    const NodeVote& theirs = view_.member(i).node_vote;
    if (theirs.digest != first.digest || theirs.willing == 0) {
      all.other = job_.nodes.world(view_.pe(i));
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
      refuses = view_.member(i).node_vote.willing == 0 ? job_.nodes.world(view_.pe(i)) : -1;
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

// ---- The device: the leaders use it, and store the outcome for the other members of their nodes ----

InterNodeBarrier::Means SpanningTeam::means(WaitPolicy policy) const {
  policy.background = job_.policy.background;
  return {.job = job_,
          .network = *job_.network,
          .leaders = *group_,
          .pes = firsts_,
          .board = *job_.remote_board,
          .slot = slot_,
          .policy = policy,
          .name = [this](int pe) { return fmt::format("PE {} (on {})", pe, job_.nodes.host(pe)); }};
}

Result<void> SpanningTeam::use_gba(const GbaMember& member, int /*ports*/) {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  auto ok = by_leader([&] {
    gba_ = std::make_unique<GbaSwitches>(means(member.policy), job_.options.gba_switch,
                                         GbaSwitches::Ids{.block = id_ | kOfBlocks, .firsts = id_ | kOfBlocks});
    refusals_.reset();
    auto joined = gba_->join(member);
    if (joined && gba_->active()) {
      joined = make_refusals();
    }
    report_gba();
    return joined;
  });
  if (ok) {
    const PortReport& report = view_.member(0).report;
    had_gba_ = gba_active_ = report.active != 0;
    votes_by_gba_ = report.votes != 0;
    gba_reason_ = report.reason.data();
  }
  return ok;
}

/// After join(), which all leaders end alike.
Result<void> SpanningTeam::make_refusals() {
  auto made = Refusals::create(job_, *group_, firsts_, slot_, id_);
  if (!made) {
    return made.error();
  }
  if (*made) {
    refusals_.emplace(**std::move(made));
  }
  return {};
}

Result<void> SpanningTeam::dissolve() {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  if (had_gba_) {  // on all members
    had_gba_ = gba_active_ = votes_by_gba_ = false;
    auto ok = by_leader([this] {
      auto dissolved = gba_->dissolve();
      report_gba();
      return dissolved;
    });
    if (!ok) {
      return ok;
    }
  }
  return map_.size > 1 ? software_sync() : Result<void>{};
}

Result<void> SpanningTeam::sync_leaders_by(Algorithm named) {
  const NodesChoice before = group_->barrier_choice();
  group_->set_barrier({named, software_.nodes.tuning});
  auto ok = group_->barrier();
  group_->set_barrier(before);
  return ok;
}

Result<void> SpanningTeam::sync_leaders() {
  if (named_) {
    return sync_leaders_by(*named_);
  }
  if (!had_gba_) {
    return group_->barrier();
  }
  const bool before = gba_->active();
  auto ok = gba_->arrive_and_wait();
  report_gba();
  if (ok && gba_->active() != before) {
    log_gba_change(before);
  }
  return ok;
}

void SpanningTeam::log_gba_change(bool before) const {
  if (!gba_->first_of_block() || !job_.options.info) {
    return;
  }
  const std::string some = gba_->blocks() > 1 ? fmt::format("{} of its ", gba_->size()) : "its ";
  const std::string how =
      before ? fmt::format("by messages after {} barriers through the device: {}", gba_->served(), gba_->reason())
             : "through the device again";
  log_info(job_.options.info_json,
           {"change", slot_, fmt::format("team {}: {}{} nodes synchronise {}", slot_, some, nodes(), how)});
}

void SpanningTeam::report_gba() const {
  PortReport& report = view_.member(0).report;
  report.by_device = gba_->by_device() ? 1 : 0;
  report.active = gba_->active() ? 1 : 0;
  report.votes = refusals_ ? 1 : 0;
  report.reason[gba_->reason().copy(report.reason.data(), report.reason.size() - 1)] = '\0';
}

BarrierPath SpanningTeam::follow_gba() {
  const BarrierPath messages = BarrierPath::software(among_nodes());
  if (!had_gba_) {
    return messages;
  }
  // The leader writes it only after all members of this node have arrived at the next sync.
  const PortReport& report = view_.member(0).report;
  if (gba_active_ != (report.active != 0)) {
    gba_active_ = !gba_active_;
    gba_reason_ = report.reason.data();
  }
  return report.by_device != 0 ? BarrierPath::device() : messages;
}

std::string SpanningTeam::gba_text(const std::string& choice) const {
  const std::string here =
      map_.size > 1 ? fmt::format("; the {} PEs of this node arrive by {}", map_.size, name_of(software_.algorithm))
                    : "";
  if (!gba_reason_.empty()) {
    const std::string note = message_note(software_.nodes.algorithm);
    return fmt::format(" ({}); its {} nodes synchronise by messages, not through a GBA: {}{}{}{}", choice, nodes(),
                       gba_reason_, note.empty() ? "" : "; ", note, here);
  }
  const int groups = gba_active_ && gba_ ? gba_->blocks() : 0;
  return fmt::format("; its {} nodes synchronise through it{}{}", nodes(),
                     groups > 1 ? fmt::format(", in {} groups", groups) : "", here);
}

}  // namespace shmem
