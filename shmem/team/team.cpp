// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/hash.hpp"

namespace shmem {
namespace {

std::uint64_t digest_of(const TeamCall& call) {
  const auto word = [](std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
  };
  // An odd factor keeps both words apart, except by coincidence.
  return word(call.kind, call.start) * base::kGoldenRatio + word(call.stride, call.size) + 1;
}

std::string call_text(const TeamCall& call) {
  switch (call.kind) {
    case TeamCall::kStrided:
      return fmt::format("start {}, stride {}, size {}", call.start, call.stride, call.size);
    case TeamCall::kRows:
      return fmt::format("rows of {}", call.size);
    case TeamCall::kColumns:
      return fmt::format("columns of rows of {}", call.size);
    case TeamCall::kBarrier:
      return fmt::format("barrier {}", name_of_barrier(call.size));
    default:
      return "nothing";
  }
}

}  // namespace

Team::Team(const Job& job, const TeamPlan& plan)
    : job_(job),
      map_(plan.here),
      world_(plan.world),
      me_(world_.member(job.world_me()).value_or(0)),
      slot_(plan.slot),
      contexts_(plan.contexts),
      view_(job, map_, slot_),
      eager_(job, map_, view_, slot_, plan.count),
      count_(plan.count),
      statistics_(job_, map_, view_, slot_, world_.size) {
  statistics_.exclude(plan.count);  // of the slot's earlier teams
}

Result<void> Team::ready() const {
  if (failed_) {
    return *failed_;
  }
  if (!open_) {
    return {};
  }
  return fail(std::errc::device_or_resource_busy,
              fmt::format("shmem: PE {}: barrier {} of team {} is open (shmemx_barrier_arrive or _timed): end it with "
                          "shmemx_barrier_wait before another collective call on the team",
                          job_.world_me(), count_ - statistics_.excluded(), slot_));
}

Error Team::differing_calls(const TeamCall& mine, const std::string& calls) const {
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: PE {}: the PEs of team {} do not {}: {}", job_.world_me(), slot_,
                          mine.kind == TeamCall::kBarrier ? "choose the same barrier for it, so nothing was changed"
                                                          : "split it alike, so no team was made",
                          calls));
}

std::string Team::describe_calls(std::size_t turn) const {
  constexpr int kMostNamed = 8;
  std::string text;
  // The first PE of each run of equal calls shows which PEs differ.
  for (int i = 0, named = 0; i < map_.size && named < kMostNamed; ++i) {
    const TeamCall& call = view_.member(i).call[turn];
    if (i > 0 && call == view_.member(i - 1).call[turn]) {
      continue;
    }
    text += fmt::format("{}PE {} asks for {}", named++ > 0 ? "; " : "", job_.nodes.world(map_.pe(i)), call_text(call));
  }
  return text;
}

Result<void> Team::agree_on_call(const TeamCall& call) {
  const std::size_t turn = ++calls_ % 2;
  view_.mine().call[turn] = call;
  const auto verdict = vote(digest_of(call), true, 0);
  if (!verdict) {
    return verdict.error();
  }
  // Those of the members on this node are alike if the least and the largest digest are the same.
  EagerChannel::Numbers digests{digest_of(call), ~digest_of(call)};
  if (map_.size > 1 && !eager_.least(digests, /*for_all=*/true)) {
    return fail_for_good(eager_.error()).error();
  }
  if (digests[0] != ~digests[1]) {
    return differing_calls(call, describe_calls(turn));
  }
  if (!verdict->alike) {
    return differing_calls(call,
                           fmt::format("PE {} on {} asks for something else than PE {} on {}", verdict->other,
                                       job_.nodes.host(verdict->other), world_.pe(0), job_.nodes.host(world_.pe(0))));
  }
  return {};
}

Result<std::uint64_t> Team::agree_on_outcome(const Result<void>& mine, std::uint64_t number) {
  const auto verdict = vote(0, mine.has_value(), number);
  if (!verdict) {
    return verdict.error();
  }
  constexpr auto kNone = std::numeric_limits<std::uint64_t>::max();
  EagerChannel::Numbers refusing{mine ? kNone : static_cast<std::uint64_t>(view_.me())};
  if (map_.size > 1 && !eager_.least(refusing, /*for_all=*/true)) {
    return fail_for_good(eager_.error()).error();
  }
  if (!mine) {
    return mine.error();
  }
  int refuses = verdict->willing ? -1 : verdict->other;
  if (refuses < 0 && refusing.front() != kNone) {
    refuses = job_.nodes.world(map_.pe(static_cast<int>(refusing.front())));
  }
  if (refuses >= 0) {
    return fail(std::errc::no_buffer_space,
                fmt::format("shmem: PE {} refuses the new team (its message says why), so none was made on any PE of "
                            "team {}",
                            refuses, slot_));
  }
  return verdict->number;
}

Result<void> Team::agree_on_algorithm(const BarrierChoice& mine, const CollectiveChoice& collectives) {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  const std::size_t turn = ++choices_ % 2;
  if (view_.me() == 0) {
    view_.mine().choice[turn] = {mine, collectives};
  }
  if (auto ok = map_.size > 1 ? software_sync() : Result<void>{}; !ok) {
    return ok;
  }
  software_ = view_.member(0).choice[turn].barrier;
  collectives_ = view_.member(0).choice[turn].collectives;
  return {};
}

Result<void> Team::try_software(int syncs) {
  Result<void> ok;
  for (int i = 0; ok && i < syncs; ++i) {
    ok = software_sync();
  }
  statistics_.exclude(static_cast<std::uint64_t>(syncs) + 1);  // and the sync in which the members agreed on the trial
  return ok;
}

Result<void> Team::use_software(std::string reason) {
  explain_no_gba(std::move(reason));
  return dissolve();
}

BarrierName Team::name_in_software(bool split) const {
  // With a central counter, one member may make the barrier in two phases and another one in one.
  const bool alike = software_.algorithm == Algorithm::kCentralCounter;
  return {.count = count_,
          .team = slot_,
          .algorithm = name_of(split ? Algorithm::kCentralCounter : software_.algorithm),
          .split = alike ? std::optional<bool>() : split,
          .excluded = statistics_.excluded()};
}

[[gnu::always_inline]] inline bool Team::make_software_sync() {
  // This member has arrived at the barrier that failed. Arriving at another one would release members that still wait
  // in the failed one.
  if (failed_) [[unlikely]] {
    return false;
  }
  const std::uint64_t count = enter();
  LateMonitor monitor([this](std::optional<BarrierMonitor>& made) -> BarrierMonitor& {
    return made.emplace(job_, map_, view_, name_in_software(false));
  });
  SoloCore core(job_.policy, monitor);
  if (const std::errc error = arrive_and_wait(software_, core, view_, count); error != std::errc{}) [[unlikely]] {
    fail_software_sync(error, monitor.explain(error));
    return false;
  }
  leave();
  return true;
}

[[gnu::cold, gnu::noinline]] void Team::fail_software_sync(std::errc error, std::string text) {
  failed_ = Error{error, std::move(text)};
}

Result<void> Team::software_sync() {
  return make_software_sync() ? Result<void>() : *failed_;
}

// With more PEs than processors, each PE runs once per barrier, and the last one to arrive goes on without giving way.
// A PE that gives data does not wait, so it would arrive first, go on last, and all others would wait in the next
// broadcast of a loop. It gives way before it arrives instead of after: it runs as often, and the next data is there
// when the others ask for it. One turn is not enough, since the kernel may give the processor back before others on it
// have run. In a large team it would have to look at too many members.
void Team::let_takers_arrive() const {
  constexpr int kMostMembers = 32;
  // Relaxed: a hint of this PE to itself.
  if (job_.policy.spins != 0 || !job_.gave_data->exchange(false, std::memory_order_relaxed)) {
    return;
  }
  if (map_.size > kMostMembers) {
    if (job_.policy.may_yield(0)) {
      job_.policy.yield();
    }
    return;
  }
  int member = 0;
  for (unsigned turns = 0; job_.policy.may_yield(turns); ++turns) {
    // Relaxed: hints, which the barrier does not rely on.
    while (member < map_.size &&
           (member == view_.me() || view_.member(member).entered.load(std::memory_order_relaxed) > count_)) {
      ++member;
    }
    if (member == map_.size) {
      return;
    }
    job_.policy.yield();
  }
}

Result<void> Team::counted_software_sync() {
  if (map_.size == 1) {
    return {};
  }
  let_takers_arrive();
  if (!make_software_sync()) [[unlikely]] {
    return *failed_;
  }
  statistics_.complete(count_, BarrierPath::software(software_.algorithm));
  return {};
}

Result<void> Team::arrive_at_leader() {
  LateMonitor monitor([this](std::optional<BarrierMonitor>& made) -> BarrierMonitor& {
    return made.emplace(job_, map_, view_, name_in_software(false));
  });
  SoloCore core(job_.policy, monitor);
  if (const std::errc error = arrive_at_first_member(software_, core, view_, count_); error != std::errc{}) {
    return fail_for_good({error, monitor.explain(error)});
  }
  return {};
}

Result<void> sync_cores(const Job& job, ThreadCore& core) {
  WaitMonitor monitor(job);
  const std::errc error = core.sync(WatchedCheck(core.check(), monitor));
  if (error == std::errc{}) {
    return {};
  }
  return fail(error, fmt::format("shmem: PE {}, core {}: the wait for the other {} cores of this PE {}", job.world_me(),
                                 core.index(), core.count() - 1, monitor.explain(error)));
}

Result<void> Team::sync_on(ThreadCore& core) {
  if (open_) {
    return ready();
  }
  if (core.index() == 0) {
    if (failed_) {
      return ready();  // the other cores see it when the kernel ends on this core
    }
    by_core_zero_ = !enter_on_cores();
  }
  // After this all cores see the choice of core 0, which does not change before they synchronise again.
  if (auto ok = sync_cores(job_, core); !ok || world_.size == 1) {
    return ok;
  }
  if (!by_core_zero_) {
    return share_sync(core);
  }
  if (core.index() == 0) {
    core_outcome_ = sync_by_core_zero();
  }
  BarrierMonitor monitor(
      job_, map_, view_,
      {.count = count_, .team = slot_, .algorithm = algorithm(), .excluded = statistics_.excluded()});
  monitor.leave_warning();  // core 0 warns, in sync_by_core_zero()
  WatchedCore watched(core, monitor);
  if (const std::errc error = watched.sync(); error != std::errc{}) {
    return fail(error, monitor.explain(error));
  }
  return core_outcome_;
}

Result<void> Team::share_sync(ThreadCore& core) {
  BarrierMonitor monitor(job_, map_, view_, name_in_software(false));
  if (core.index() != 0) {
    monitor.leave_warning();
  }
  WatchedCore watched(core, monitor);
  const std::errc error = arrive_and_wait(software_, watched, view_, count_);
  if (error != std::errc{}) {
    Error failure{error, monitor.explain(error)};
    return core.index() == 0 ? fail_for_good(std::move(failure)) : failure;
  }
  if (core.index() == 0) {
    leave();
    statistics_.complete(count_, BarrierPath::software(software_.algorithm));
  }
  return {};
}

}  // namespace shmem
