// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_team.hpp"

#include "shmem/barrier/algorithms.hpp"
#include "shmem/barrier/split_sync.hpp"
#include "shmem/log.hpp"

namespace shmem {

Result<void> GbaTeam::use(const GbaMember& member, int ports, std::uint64_t count, const Sync& software_sync) {
  if (view_.size() == 1) {
    reason_ = "a team of one PE needs no barrier";
    return {};
  }
  if (ports == 0) {
    reason_ = member.unavailable;
    return {};
  }
  const PortSharing sharing(map_, ports);
  if (!sharing.complete()) {
    reason_ = "PE " + std::to_string(sharing.missing_opener() % ports) + ", which has the port of PE " +
              std::to_string(sharing.missing_opener()) + " open, is not in the team";
    return {};
  }
  auto agreement = agree_on_gba(view_, sharing.openers(), member, count, software_sync);
  if (!agreement) {
    return tl::make_unexpected(agreement.error());
  }
  reason_ = agreement->reason;
  if (!agreement->group && !agreement->later) {
    return {};
  }
  member_.emplace(member);
  openers_ = view_.prefix(sharing.openers());
  shares_ = sharing.shared();
  behind_port_ = sharing.group_of(view_.me());
  recovery_.emplace(openers_, *member_);
  if (agreement->group) {
    begin(*std::move(agreement->group));
  }
  return {};
}

void GbaTeam::begin(GbaGroup group) {
  active_ = true;
  reason_.clear();
  served_ = 0;
  owned_ = std::move(group.owned);
  if (group.membership) {
    barrier_.emplace(openers_, std::move(group.membership), member_->policy);
  }
}

std::errc GbaTeam::arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch) {
  if (!shares_) {
    return meet_openers(k, software, watch);
  }
  SoloCore core(job_.policy, watch);
  if (const std::errc error = gather(core, view_, behind_port_, k); error != std::errc{}) {
    return error;
  }
  if (is_opener()) {
    if (const std::errc error = meet_openers(k, software, watch); error != std::errc{}) {
      return error;
    }
    report_to_sharers();
  }
  if (const std::errc error = release(core, view_, behind_port_, k); error != std::errc{}) {
    return error;
  }
  if (!is_opener()) {
    follow_opener();
  }
  return {};
}

void GbaTeam::report_to_sharers() const {
  PortReport& report = view_.mine().report;
  const bool news = (report.active != 0) != active_;
  report.by_device = by_device_ ? 1 : 0;
  report.active = active_ ? 1 : 0;
  if (news) {
    report.reason[reason_.copy(report.reason.data(), report.reason.size() - 1)] = '\0';
  }
}

void GbaTeam::follow_opener() {
  const PortReport& report = view_.member(behind_port_.first).report;
  by_device_ = report.by_device != 0;
  if (active_ != (report.active != 0)) {
    active_ = !active_;
    reason_ = report.reason.data();
  }
}

std::errc GbaTeam::meet_openers(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch) {
  by_device_ = false;
  if (!barrier_ && GbaRecovery::is_check(k)) {
    recovery_->vote(k);
  }
  const std::errc error = barrier_ ? barrier_->arrive_and_wait(k, watch) : meet_in_software(k, software, watch);
  if (error == std::errc{}) {
    end_barrier(k);
  }
  return error;
}

std::errc GbaTeam::meet_in_software(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch) {
  SoloCore core(job_.policy, watch);
  if (shares_) {
    // By words that gather and release leave alone.
    return disseminate(core, openers_, Group{0, 1, openers_.size()}, k);
  }
  return shmem::arrive_and_wait(software, core, openers_, k);
}

void GbaTeam::arrive(std::uint64_t k) {
  by_device_ = false;
  if (barrier_) {
    barrier_->arrive(k);
  } else if (is_opener() && GbaRecovery::is_check(k)) {
    recovery_->vote(k);
  }
  if (meets_in_memory()) {
    SplitSync::arrive(job_.policy, view_, k);
  }
}

bool GbaTeam::test(std::uint64_t k) {
  const bool over = (!barrier_ || barrier_->test()) && (!meets_in_memory() || SplitSync::is_over(view_, k));
  if (over) {
    end_barrier(k);
  }
  return over;
}

std::errc GbaTeam::finish(std::uint64_t k, BarrierWatch& watch) {
  std::errc error = barrier_ ? barrier_->finish(watch) : std::errc{};
  if (error == std::errc{} && meets_in_memory()) {
    error = SplitSync::wait(job_.policy, view_, k, watch);
  }
  if (error == std::errc{}) {
    end_barrier(k);
  }
  return error;
}

void GbaTeam::end_barrier(std::uint64_t k) {
  if (barrier_) {
    by_device_ = barrier_->by_device();
    served_ += by_device_ ? 1 : 0;
    if (barrier_->over()) {
      lose();
    }
  } else if (!is_opener()) {
    by_device_ = active_;  // of a barrier in two phases; the opener tells with the next one
  } else if (GbaRecovery::is_check(k)) {
    end_check_round(k);
  }
}

void GbaTeam::lose() {
  reason_ = barrier_->trouble();
  tell("software barriers after " + std::to_string(served_) + " through the device: " + reason_);
  // Nobody waits for this group any more. It goes at once, so that the device has room for the next one.
  active_ = false;
  barrier_.reset();
  owned_.reset();
  member_->port->doubt();
  recovery_->lost_again(served_);
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
  active_ = shares_ = false;
  barrier_.reset();
  if (ok) {
    ok = software_sync();
  }
  owned_.reset();
  return ok;
}

}  // namespace shmem
