// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/local_team.hpp"

#include <fmt/format.h>

#include "shmem/config/log.hpp"

namespace shmem {

void LocalTeam::report() const {
  const bool is_silent = statistics_.total() == 0 && !job_.options.info_json;  // most are not of the program
  if (job_.options.info && me_ == 0 && map_.size > 1 && !is_silent) {
    log_info(job_.options.info_json,
             {"statistics", slot_, fmt::format("team {} ({} PEs): {}", slot_, map_.size, statistics_.text())});
  }
}

std::string LocalTeam::gba_text(const std::string& choice) const {
  return gba_reason().empty() ? "" : fmt::format(" ({}); not through a GBA: {}", choice, gba_reason());
}

Result<void> LocalTeam::sync() {
  if (open_ || failed_) {
    return ready();
  }
  if (map_.size == 1) {
    return {};
  }
  return gba_.serves(count_ + 1) ? gba_sync() : counted_software_sync();
}

/// A function of its own: its monitor would cost barriers in software a large frame.
[[gnu::noinline]] Result<void> LocalTeam::gba_sync() {
  enter();
  BarrierMonitor monitor(job_, map_, view_, name_as_served(false));
  return end_gba_sync(gba_.arrive_and_wait(count_, software_, monitor), monitor);
}

Result<void> LocalTeam::sync_by_core_zero() {
  BarrierMonitor monitor(job_, map_, view_, name_as_served(false));
  return end_gba_sync(gba_.arrive_and_wait(count_, software_, monitor), monitor);
}

Result<void> LocalTeam::end_gba_sync(std::errc error, const BarrierMonitor& monitor) {
  if (error != std::errc{}) {
    return fail_for_good({error, monitor.explain(error)});
  }
  leave();
  statistics_.complete(count_, gba_.by_device() ? BarrierPath::device() : BarrierPath::software(software_.algorithm));
  return {};
}

BarrierName LocalTeam::name_as_served(bool split) const {
  return gba_.active()
             ? BarrierName{.count = count_, .team = slot_, .algorithm = "gba", .excluded = statistics_.excluded()}
             : name_in_software(split);
}

Result<VoteResult> LocalTeam::vote(std::uint64_t /*digest*/, bool /*willing*/, std::uint64_t /*number*/) {
  auto ok = sync();
  return ok ? Result<VoteResult>(VoteResult{}) : ok.error();
}

Result<void> LocalTeam::arrive() {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  open_by_gba_ = map_.size > 1 && gba_.serves(count_ + 1);
  enter(true);
  open_monitor_.emplace(job_, map_, view_, name_as_served(true));
  open_monitor_->do_not_limit();
  open_ = true;
  if (open_by_gba_) {
    gba_.arrive(count_);
  } else if (map_.size > 1) {
    SplitSync::arrive(job_.policy, view_, count_);
  }
  return {};
}

Result<bool> LocalTeam::test() {
  bool over = true;
  if (open_by_gba_) {
    over = gba_.test(count_);
  } else if (map_.size > 1) {
    over = SplitSync::is_over(view_, count_);
  }
  if (over) {
    close();
    return true;
  }
  if (const std::errc error = (*open_monitor_)(); error != std::errc{}) {
    return fail(error, open_monitor_->explain(error));
  }
  return false;
}

Result<void> LocalTeam::wait(std::optional<std::chrono::nanoseconds> limit) {
  BarrierMonitor monitor(job_, map_, view_, name_as_served(true));
  if (limit) {
    monitor.limit_to(*limit);
  }
  std::errc error{};
  if (open_by_gba_) {
    error = gba_.finish(count_, monitor);
  } else if (map_.size > 1) {
    error = SplitSync::wait(job_.policy, view_, count_, monitor);
  }
  if (error != std::errc{}) {
    return fail(error, monitor.explain(error));
  }
  close();
  return {};
}

void LocalTeam::close() {
  open_ = false;
  if (map_.size > 1) {
    leave();
    const bool by_device = open_by_gba_ && gba_.by_device();
    statistics_.complete(count_, by_device ? BarrierPath::device() : BarrierPath::software(Algorithm::kCentralCounter));
  }
}

Result<void> LocalTeam::use_gba(const GbaMember& member, int ports) {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  return gba_.use(member, ports, count_, [this] { return software_sync(); });
}

Result<void> LocalTeam::dissolve() {
  if (auto ok = ready(); !ok || map_.size == 1) {
    return ok;
  }
  // In software: after it no member reads published arrivals any more, and the counts never go back.
  auto ok = software_sync();
  return ok ? gba_.dissolve([this] { return software_sync(); }) : ok;
}

}  // namespace shmem
