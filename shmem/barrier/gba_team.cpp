// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_team.hpp"

#include "shmem/log.hpp"

namespace shmem {

Result<void> GbaTeam::use(const GbaMember& member, std::uint64_t count, const Sync& software_sync) {
  if (view_.size() == 1) {
    reason_ = "a team of one PE needs no barrier";
    return {};
  }
  auto agreement = agree_on_gba(view_, member, count, software_sync);
  if (!agreement) {
    return tl::make_unexpected(agreement.error());
  }
  barrier_ = std::move(agreement->barrier);
  owned_group_ = agreement->owned;
  reason_ = agreement->reason;
  return {};
}

std::errc GbaTeam::arrive_and_wait(std::uint64_t k, BarrierWatch& watch) {
  by_device_ = false;
  if (const std::errc error = barrier_->arrive_and_wait(k, watch); error != std::errc{}) {
    return error;
  }
  by_device_ = barrier_->by_device();
  served_ += by_device_ ? 1 : 0;
  if (barrier_->over()) {
    give_up();
  }
  return {};
}

void GbaTeam::give_up() {
  reason_ = barrier_->trouble();
  if (job_.options.info && view_.me() == 0) {
    log(LogLevel::kInfo, "shmem: team %d: software barriers after %llu through the device: %s", slot_,
        static_cast<unsigned long long>(served_), reason_.c_str());
  }
  barrier_.reset();  // the group itself goes back in dissolve(), with all members
}

Result<void> GbaTeam::dissolve(gba_device* port, const Sync& software_sync) {
  // In good order: disabled, left by all, freed. Each step fails only with the device, and then there is nothing to
  // end.
  if (owned_group_) {
    gba_group_disable(port, &*owned_group_);
  }
  auto ok = software_sync();
  barrier_.reset();
  if (ok) {
    ok = software_sync();
  }
  if (owned_group_) {
    gba_group_free(port, &*owned_group_);
    owned_group_.reset();
  }
  return ok;
}

}  // namespace shmem
