// SPDX-License-Identifier: Apache-2.0
// Syncs of a team in two phases. In software the members count themselves, whatever the team's algorithm is: arriving
// waits for nobody.
#include "shmem/barrier/split_sync.hpp"
#include "shmem/team/team.hpp"

namespace shmem {

Result<void> Team::ready() const {
  if (failed_) {
    return tl::make_unexpected(*failed_);
  }
  if (!open_) {
    return {};
  }
  return fail(std::errc::device_or_resource_busy,
              "shmem: PE " + std::to_string(job_.world_me()) + ": barrier " + std::to_string(count_) + " of team " +
                  std::to_string(slot_) +
                  " is open (shmemx_barrier_arrive or _timed): end it with shmemx_barrier_wait before another "
                  "collective call on the team");
}

BarrierName Team::name_in_software(bool split) const {
  // Where members count themselves anyway, one may make the barrier in two phases and another in one.
  const bool alike = software_.algorithm == Algorithm::kCentralCounter;
  return {.count = count_,
          .team = slot_,
          .algorithm = name_of(split ? Algorithm::kCentralCounter : software_.algorithm),
          .split = alike ? std::optional<bool>() : split};
}

BarrierName Team::name_as_served(bool split) const {
  return gba_.active() ? BarrierName{.count = count_, .team = slot_, .algorithm = "gba"} : name_in_software(split);
}

Result<void> Team::arrive() {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  if (span_) {
    // Without regard to nodes: nobody waits here for those of his own.
    auto ok = span_->everybody().start_barrier();
    if (ok) {
      open_.emplace(Open{false, BarrierWatch(job_, map_, view_, name_as_served(true))});
    }
    return ok;
  }
  const bool by_gba = map_.size > 1 && gba_.serves(count_ + 1);
  enter(true);
  BarrierWatch watch(job_, map_, view_, name_as_served(true));
  watch.do_not_limit();
  open_.emplace(Open{by_gba, watch});
  if (by_gba) {
    gba_.arrive(count_);
  } else if (map_.size > 1) {
    SplitSync::arrive(job_.policy, view_, count_);
  }
  return {};
}

Result<bool> Team::test() {
  if (span_) {
    auto over = span_->everybody().test_barrier();
    if (over && *over) {
      close();
    }
    return over;
  }
  std::errc error{};
  bool over = true;
  if (open_->by_gba) {
    over = gba_.test(count_);
  } else if (map_.size > 1) {
    over = SplitSync::is_over(view_, count_);
  }
  if (!over) {
    error = open_->watch();
  }
  if (error != std::errc{}) {
    return fail(error, open_->watch.explain(error));
  }
  if (over) {
    close();
  }
  return over;
}

Result<void> Team::wait(std::optional<std::chrono::nanoseconds> limit) {
  if (span_) {
    auto ok = span_->everybody().finish_barrier(limit);
    if (ok) {
      close();
    }
    return ok;
  }
  BarrierWatch watch(job_, map_, view_, name_as_served(true));
  if (limit) {
    watch.limit_to(*limit);
  }
  std::errc error{};
  if (open_->by_gba) {
    error = gba_.finish(count_, watch);
  } else if (map_.size > 1) {
    error = SplitSync::wait(job_.policy, view_, count_, watch);
  }
  if (error != std::errc{}) {
    return fail(error, watch.explain(error));
  }
  close();
  return {};
}

void Team::close() {
  if (span_) {
    ++spanning_syncs_;
  } else if (map_.size > 1) {
    leave();
    const bool by_device = open_->by_gba && gba_.by_device();
    statistics_.complete(count_, by_device ? BarrierPath::device() : BarrierPath::software(Algorithm::kCentralCounter));
  }
  open_.reset();
}

}  // namespace shmem
