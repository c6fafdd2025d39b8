// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/team.hpp"

#include <cstdio>

namespace shmem {
namespace {

bool in_software_barrier(const TeamSync& member, std::uint64_t count) {
  return member.round.value.load(std::memory_order_relaxed) >= count;
}

}  // namespace

Team::Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count)
    : job_(job), map_(map), slot_(slot), view_(job, map_, slot), count_(count) {}

Result<void> Team::sync() {
  if (map_.size == 1) {
    return {};
  }
  if (gba_) {
    return gba_sync();
  }
  auto ok = software_sync();
  stats_.by_software += ok ? 1 : 0;
  return ok;
}

Result<void> Team::software_sync() {
  const std::uint64_t count = ++count_;
  BarrierWatch watch(job_, map_, view_, count, in_software_barrier);
  SoloCore core(job_.policy, watch);
  if (const std::errc error = npu_v3(core, view_, count); error != std::errc{}) {
    return fail(error, watch.explain(error, slot_, "npu_v3"));
  }
  return {};
}

Result<void> Team::gba_sync() {
  BarrierWatch watch(job_, map_, view_, gba_->sequence() + 1, GbaBarrier::has_arrived);
  if (const std::errc error = gba_->arrive_and_wait(watch); error != std::errc{}) {
    return fail(error, watch.explain(error, slot_, "gba"));
  }
  if (gba_->by_device()) {
    ++stats_.by_device;
  } else {
    ++stats_.by_software;
    after_gba_sync();
  }
  return {};
}

void Team::after_gba_sync() {
  if (!gba_->over()) {
    return;
  }
  reason_ = gba_->trouble();
  if (job_.options.info && view_.me() == 0) {
    std::fprintf(stderr, "shmem: team %d: software barriers after %llu through the device: %s\n", slot_,
                 static_cast<unsigned long long>(stats_.by_device), reason_.c_str());
  }
  gba_.reset();  // the group itself goes back in dissolve(), with all members
}

Result<void> Team::use_gba(const GbaMember& member) {
  if (map_.size == 1) {
    reason_ = "a team of one PE needs no barrier";
    return {};
  }
  auto agreement = agree_on_gba(view_, member, [this] { return software_sync(); });
  if (!agreement) {
    return tl::make_unexpected(agreement.error());
  }
  gba_ = std::move(agreement->barrier);
  owned_group_ = agreement->owned;
  reason_ = agreement->reason;
  return {};
}

Result<void> Team::dissolve(gba_device* port) {
  if (map_.size == 1) {
    return {};
  }
  // In software: once it is over, nobody reads published arrivals any more, and the counts never go back.
  auto ok = software_sync();
  if (!ok || map_.size == 1) {
    return ok;
  }
  // In good order: disabled, left by all, freed. Each step fails only with the device, and then there is nothing to
  // end.
  if (owned_group_) {
    gba_group_disable(port, &*owned_group_);
  }
  ok = software_sync();
  gba_.reset();
  if (ok) {
    ok = software_sync();
  }
  if (owned_group_) {
    gba_group_free(port, &*owned_group_);
    owned_group_.reset();
  }
  return ok;
}

Result<void> Team::use_software(gba_device* port, std::string reason) {
  reason_ = std::move(reason);
  return dissolve(port);
}

}  // namespace shmem
