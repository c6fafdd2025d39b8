// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_team.hpp"

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/split_sync.hpp"
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
  member_.emplace(member);
  reason_ = agreement->reason;
  if (agreement->group || agreement->later) {
    recovery_.emplace(view_, *member_);
  }
  if (agreement->group) {
    begin(*std::move(agreement->group));
  }
  return {};
}

void GbaTeam::begin(GbaGroup group) {
  owned_ = std::move(group.owned);
  barrier_.emplace(view_, std::move(group.membership), member_->policy);
  served_ = 0;
  reason_.clear();
}

std::errc GbaTeam::arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch) {
  by_device_ = false;
  const std::errc error = barrier_ ? barrier_->arrive_and_wait(k, watch) : check_round(k, software, watch);
  if (error == std::errc{}) {
    end_barrier(k);
  }
  return error;
}

void GbaTeam::arrive(std::uint64_t k) {
  by_device_ = false;
  if (barrier_) {
    barrier_->arrive(k);
    return;
  }
  recovery_->vote(k);
  SplitSync::arrive(job_.policy, view_, k);
}

bool GbaTeam::test(std::uint64_t k) {
  const bool over = barrier_ ? barrier_->test() : SplitSync::is_over(view_, k);
  if (over) {
    end_barrier(k);
  }
  return over;
}

std::errc GbaTeam::finish(std::uint64_t k, BarrierWatch& watch) {
  const std::errc error = barrier_ ? barrier_->finish(watch) : SplitSync::wait(job_.policy, view_, k, watch);
  if (error == std::errc{}) {
    end_barrier(k);
  }
  return error;
}

void GbaTeam::end_barrier(std::uint64_t k) {
  if (!barrier_) {
    end_check_round(k);
    return;
  }
  by_device_ = barrier_->by_device();
  served_ += by_device_ ? 1 : 0;
  if (barrier_->over()) {
    lose();
  }
}

void GbaTeam::lose() {
  reason_ = barrier_->trouble();
  tell("software barriers after " + std::to_string(served_) + " through the device: " + reason_);
  // Nobody waits for this group any more. It goes at once, so that the device has room for the next one.
  barrier_.reset();
  owned_.reset();
  member_->port->doubt();
  recovery_->lost_again(served_);
}

std::errc GbaTeam::check_round(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch) {
  recovery_->vote(k);
  SoloCore core(job_.policy, watch);
  return shmem::arrive_and_wait(software, core, view_, k);
}

void GbaTeam::end_check_round(std::uint64_t k) {
  if (auto group = recovery_->conclude(k)) {
    begin(*std::move(group));
    tell("barriers go through the device again, from barrier " + std::to_string(k + 1) + " on");
  }
}

void GbaTeam::tell(const std::string& text) const {
  if (job_.options.info && view_.me() == 0) {
    log(LogLevel::kInfo, "shmem: team %d: %s", slot_, text.c_str());
  }
}

Result<void> GbaTeam::dissolve(const Sync& software_sync) {
  if (!recovery_) {
    return {};  // on all members
  }
  recovery_.reset();
  // In good order: disabled, left by all, freed. Each step fails only with the device, and then there is nothing to
  // end.
  if (owned_) {
    owned_->disable();
  }
  auto ok = software_sync();
  barrier_.reset();
  if (ok) {
    ok = software_sync();
  }
  owned_.reset();
  return ok;
}

}  // namespace shmem
