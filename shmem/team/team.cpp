// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team.hpp"

#include <cstdio>

#include "shmem/barrier/timed_watch.hpp"
#include "shmem/collective/node_phases.hpp"
#include "shmem/log.hpp"

namespace shmem {
namespace {

std::uint64_t digest_of(const TeamCall& call) {
  const auto word = [](std::int32_t high, std::int32_t low) {
    return std::uint64_t{static_cast<std::uint32_t>(high)} << 32 | static_cast<std::uint32_t>(low);
  };
  // An odd factor keeps both words apart, but for chance.
  return word(call.kind, call.start) * 0x9e3779b97f4a7c15 + word(call.stride, call.size) + 1;
}

std::string call_text(const TeamCall& call) {
  const auto number = [](int value) { return std::to_string(value); };
  switch (call.kind) {
    case TeamCall::kStrided:
      return "start " + number(call.start) + ", stride " + number(call.stride) + ", size " + number(call.size);
    case TeamCall::kRows:
      return "rows of " + number(call.size);
    case TeamCall::kColumns:
      return "columns of rows of " + number(call.size);
    default:
      return "nothing";
  }
}

}  // namespace

Team::Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count, int contexts)
    : Team(job, map, slot, count, contexts, map, 0) {}

Team::Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count, int contexts, const TeamMap& world,
           std::uint32_t id)
    : job_(job),
      map_(map),
      world_(world),
      me_(world.member(job.world_me()).value_or(0)),
      slot_(slot),
      contexts_(contexts),
      view_(job, map_, slot),
      carrier_(job, map_, view_, slot, count),
      count_(count),
      gba_(job, map_, view_, slot),
      statistics_(job_, map_, view_, slot) {
  if (world.size != map.size) {
    span_ = std::make_unique<Span>(job, world, view_, id, slot);
  }
}

void Team::report() const {
  if (!job_.options.info || me_ != 0) {
    return;
  }
  if (span_) {
    const BarrierStats done = stats();
    log(LogLevel::kInfo,
        "shmem: team %d (%d PEs on %d nodes): the nodes met %llu times through a GBA, %llu times by messages", slot_,
        world_.size, span_->nodes(), static_cast<unsigned long long>(done.by_device),
        static_cast<unsigned long long>(done.by_software));
  } else if (map_.size > 1) {
    log(LogLevel::kInfo, "shmem: team %d (%d PEs): %s", slot_, map_.size, statistics_.text().c_str());
  }
}

std::string Team::describe_calls(std::size_t turn) const {
  constexpr int kMostNamed = 8;
  std::string text = "shmem: PE " + std::to_string(job_.world_me()) + ": the PEs of team " + std::to_string(slot_) +
                     " do not split it alike, so no team was made:";
  int named = 0;
  // The first PE of each run of equal calls is enough to see who differs.
  for (int i = 0; i < map_.size && named < kMostNamed; ++i) {
    const TeamCall& call = view_.member(i).call[turn];
    if (i > 0 && call == view_.member(i - 1).call[turn]) continue;
    text += (named++ > 0 ? "; PE " : " PE ") + std::to_string(job_.nodes.world(map_.pe(i))) + " asks for " +
            call_text(call);
  }
  return text;
}

Result<void> Team::agree_on_call(const TeamCall& call) {
  const std::size_t turn = ++calls_ % 2;
  view_.mine().call[turn] = call;
  const auto verdict = vote(digest_of(call), true, 0);
  if (!verdict) {
    return tl::make_unexpected(verdict.error());
  }
  for (int i = 0; i < map_.size; ++i) {
    if (view_.member(i).call[turn] != call) {
      return fail(std::errc::invalid_argument, describe_calls(turn));
    }
  }
  if (!verdict->alike) {
    return fail(std::errc::invalid_argument,
                "shmem: PE " + std::to_string(job_.world_me()) + ": the PEs of team " + std::to_string(slot_) +
                    " do not split it alike, so no team was made: PE " + std::to_string(verdict->other) + " on " +
                    job_.nodes.host(verdict->other) + " asks for something else than PE " +
                    std::to_string(world_.pe(0)) + " on " + job_.nodes.host(world_.pe(0)));
  }
  return {};
}

Result<Verdict> Team::vote(std::uint64_t digest, bool willing, std::uint64_t number) {
  if (open_ || failed_) {
    return tl::make_unexpected(ready().error());
  }
  if (!span_) {
    auto ok = sync_here();
    return ok ? Result<Verdict>(Verdict{}) : tl::make_unexpected(ok.error());
  }
  return span_->vote([this] { return sync_here(); }, digest, willing, number);
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

std::uint64_t Team::enter(bool split) {
  ++count_;
  if (split) {
    view_.mine().split.store(count_, std::memory_order_relaxed);
  }
  // For messages, and for members that take the slot after a sync of the parent. Release: pairs with BarrierWatch.
  view_.mine().entered.store(count_, std::memory_order_release);
  statistics_.arrive(count_);
  return count_;
}

Result<void> Team::sync() {
  return span_ ? spanning_sync() : sync_here();
}

Result<void> Team::spanning_sync() {
  auto ok = ready();
  if (ok) {
    ok = NodePhases(job_, *span_, carrier_, map_.size).around([this] { return span_->meet_leaders(); });
  }
  if (ok) {
    span_->follow_gba();
  }
  if (!ok && !failed_ && !open_) {
    failed_ = ok.error();
  }
  ++spanning_syncs_;
  return ok;
}

Result<void> Team::sync_here() {
  if (open_ || failed_) {
    return ready();
  }
  if (map_.size == 1) {
    return {};
  }
  if (gba_.serves(count_ + 1)) {
    return gba_sync(enter());
  }
  auto ok = software_sync();
  if (ok) {
    statistics_.complete(count_, BarrierPath::software(software_.algorithm));
  }
  return ok;
}

Result<void> Team::fail_for_good(std::errc error, const BarrierWatch& watch) {
  failed_ = Error{error, watch.explain(error)};
  return tl::make_unexpected(*failed_);
}

Result<void> Team::software_sync() {
  // This member has come to the barrier that failed. Coming to another would let go who still waits for that one.
  if (failed_) {
    return tl::make_unexpected(*failed_);
  }
  const std::uint64_t count = enter();
  BarrierWatch watch(job_, map_, view_, name_in_software(false));
  SoloCore core(job_.policy, watch);
  if (const std::errc error = arrive_and_wait(software_, core, view_, count); error != std::errc{}) {
    return fail_for_good(error, watch);
  }
  leave();
  return {};
}

Result<void> Team::gba_sync(std::uint64_t count) {
  BarrierWatch watch(job_, map_, view_, name_as_served(false));
  if (const std::errc error = gba_.arrive_and_wait(count, software_, watch); error != std::errc{}) {
    return fail_for_good(error, watch);
  }
  leave();
  statistics_.complete(count, gba_.by_device() ? BarrierPath::device() : BarrierPath::software(software_.algorithm));
  return {};
}

Result<void> meet_cores(const Job& job, ThreadCore& core) {
  TimedWatch watch(job);
  const std::errc error = core.sync(WatchedCheck(core.check(), watch));
  if (error == std::errc{}) {
    return {};
  }
  return fail(error, "shmem: PE " + std::to_string(job.world_me()) + ", core " + std::to_string(core.index()) +
                         ": the wait for the other " + std::to_string(core.count() - 1) + " cores of this PE " +
                         watch.explain(error));
}

Result<void> Team::sync_on(ThreadCore& core) {
  if (open_) {
    return ready();
  }
  if (core.index() == 0) {
    if (failed_) {
      return ready();  // the other cores learn of it when the kernel ends on this one
    }
    by_core_zero_ = span_ != nullptr || gba_.serves(enter());
  }
  // After this all cores see what core 0 has chosen; it does not change before they meet again.
  if (auto ok = meet_cores(job_, core); !ok || world_.size == 1) {
    return ok;
  }
  if (!by_core_zero_) {
    BarrierWatch watch(job_, map_, view_, name_in_software(false));
    if (core.index() != 0) {
      watch.leave_warning();
    }
    WatchedCore watched(core, watch);
    const std::errc error = arrive_and_wait(software_, watched, view_, count_);
    if (error != std::errc{}) {
      return core.index() == 0 ? fail_for_good(error, watch) : fail(error, watch.explain(error));
    }
    if (core.index() == 0) {
      leave();
      statistics_.complete(count_, BarrierPath::software(software_.algorithm));
    }
    return {};
  }
  if (core.index() == 0) {
    core_outcome_ = span_ ? spanning_sync() : gba_sync(count_);
  }
  BarrierWatch watch(job_, map_, view_, name_as_served(false));
  watch.leave_warning();  // core 0 warns, in gba_sync()
  WatchedCore watched(core, watch);
  if (const std::errc error = watched.sync(); error != std::errc{}) {
    return fail(error, watch.explain(error));
  }
  return core_outcome_;
}

Result<std::uint64_t> Team::agree_on_outcome(const Result<void>& mine, std::uint64_t number) {
  const std::size_t turn = calls_ % 2;
  view_.mine().refused[turn] = mine ? 0 : 1;
  const auto verdict = vote(0, mine.has_value(), number);
  if (!verdict || !mine) {
    return tl::make_unexpected(verdict ? mine.error() : verdict.error());
  }
  int refuses = verdict->willing ? -1 : verdict->other;
  for (int i = 0; i < map_.size && refuses < 0; ++i) {
    if (view_.member(i).refused[turn] != 0) refuses = job_.nodes.world(map_.pe(i));
  }
  if (refuses >= 0) {
    return fail(std::errc::no_buffer_space, "shmem: PE " + std::to_string(refuses) +
                                                " has no room for another team, so none was made on any PE of team " +
                                                std::to_string(slot_));
  }
  return verdict->number;
}

Result<void> Team::use_gba(const GbaMember& member, int ports) {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  if (span_) {
    return span_->use_gba([this] { return sync_here(); }, member);
  }
  return gba_.use(member, ports, count_, [this] { return software_sync(); });
}

Result<void> Team::dissolve() {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  if (span_) {
    if (auto ok = span_->give_up_gba([this] { return sync_here(); }); !ok) {
      return ok;
    }
  }
  if (map_.size == 1) {
    return {};
  }
  // In software: once it is over, nobody reads published arrivals any more, and the counts never go back.
  auto ok = software_sync();
  return ok ? gba_.dissolve([this] { return software_sync(); }) : ok;
}

Result<void> Team::use_software(std::string reason) {
  explain_no_gba(std::move(reason));
  return dissolve();
}

}  // namespace shmem
