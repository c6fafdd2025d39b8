// SPDX-License-Identifier: Apache-2.0
#include "shmem/offload/gba_team.hpp"

#include <fmt/format.h>

#include "shmem/barrier/algorithms.hpp"
#include "shmem/config/log.hpp"

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
    reason_ = fmt::format("PE {}, which has the port of PE {} open, is not in the team",
                          sharing.missing_opener() % ports, sharing.missing_opener());
    return {};
  }
  auto agreement = agree_on_gba(view_, sharing.openers(), member, count, barrier_, software_sync);
  if (!agreement) {
    return agreement.error();
  }
  reason_ = agreement->reason;
  if (!agreement->used && !agreement->later) {
    barrier_.reset();
    return {};
  }
  openers_ = view_.prefix(sharing.openers());
  shares_ = sharing.shared();
  behind_port_ = sharing.group_of(view_.me());
  recovers_ = true;
  if (agreement->used) {
    begin();
  }
  return {};
}

void GbaTeam::begin() {
  active_ = true;
  reason_.clear();
}

std::errc GbaTeam::arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierMonitor& watch) {
  SoloCore core(job_.policy, watch);
  std::errc error = shares_ ? gather(core, view_, behind_port_, k) : std::errc{};
  if (error == std::errc{} && is_opener()) {
    by_device_ = false;
    on_device_ = barrier_ && barrier_->arrive(k);
    error = on_device_ ? barrier_->finish(watch) : openers_in_software(k, software, watch);
  }
  if (error != std::errc{}) {
    return error;
  }
  if (is_opener()) {
    end_barrier(k);
  }
  return shares_ ? release_sharers(core, k) : error;
}

std::errc GbaTeam::release_sharers(SoloCore<BarrierMonitor>& core, std::uint64_t k) {
  if (is_opener()) {
    report_to_sharers();
  }
  const std::errc error = release(core, view_, behind_port_, k);
  if (error == std::errc{} && !is_opener()) {
    follow_opener();
  }
  return error;
}

void GbaTeam::report_to_sharers() const {
  PortReport& report = view_.mine().report;
  const bool changed = (report.active != 0) != active_;
  report.by_device = by_device_ ? 1 : 0;
  report.active = active_ ? 1 : 0;
  if (changed) {
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

std::errc GbaTeam::openers_in_software(std::uint64_t k, const BarrierChoice& software, BarrierMonitor& watch) {
  SoloCore core(job_.policy, watch);
  if (shares_) {
    // With words that gather and release do not use.
    return disseminate(core, openers_, MemberGroup{0, 1, openers_.size()}, k);
  }
  return shmem::arrive_and_wait(software, core, openers_, k);
}

void GbaTeam::arrive(std::uint64_t k) {
  by_device_ = false;
  on_device_ = barrier_ && barrier_->arrive(k);
  if (ends_in_memory()) {
    SplitSync::arrive(job_.policy, view_, k);
  }
}

bool GbaTeam::test(std::uint64_t k) {
  const bool over = (!on_device_ || barrier_->test()) && (!ends_in_memory() || SplitSync::is_over(view_, k));
  if (over) {
    end_barrier(k);
  }
  return over;
}

std::errc GbaTeam::finish(std::uint64_t k, BarrierMonitor& watch) {
  std::errc error = on_device_ ? barrier_->finish(watch) : std::errc{};
  if (error == std::errc{} && ends_in_memory()) {
    error = SplitSync::wait(job_.policy, view_, k, watch);
  }
  if (error == std::errc{}) {
    end_barrier(k);
  }
  return error;
}

void GbaTeam::end_barrier(std::uint64_t k) {
  if (on_device_) {
    by_device_ = barrier_->by_device();
    if (!by_device_ && !barrier_->uses_device()) {
      lose();
    }
  } else if (!is_opener()) {
    by_device_ = active_;  // a barrier in two phases: the opener reports it with the next one
  } else if (barrier_ && DeviceBarrier::is_check(k)) {
    end_check_round();
  }
}

void GbaTeam::lose() {
  active_ = false;
  reason_ = barrier_->trouble();
  log_change(fmt::format("software barriers after {} through the device: {}", barrier_->served(), reason_));
}

void GbaTeam::end_check_round() {
  barrier_->conclude();
  if (barrier_->uses_device()) {
    begin();
    log_change("barriers go through the device again");
  }
}

void GbaTeam::log_change(const std::string& text) const {
  if (job_.options.info && view_.me() == 0) {
    log_info(job_.options.info_json, {"change", slot_, fmt::format("team {}: {}", slot_, text)});
  }
}

void GbaTeam::abandon() {
  recovers_ = active_ = shares_ = on_device_ = false;
  barrier_.reset();
}

Result<void> GbaTeam::dissolve(const Sync& software_sync) {
  if (!recovers_) {
    return {};  // on all members
  }
  recovers_ = false;
  // In this order: disabled, left by all, freed.
  if (barrier_) {
    barrier_->disable();
  }
  auto ok = software_sync();
  active_ = shares_ = on_device_ = false;
  if (barrier_) {
    barrier_->leave();
  }
  if (ok) {
    ok = software_sync();
  }
  barrier_.reset();
  return ok;
}

}  // namespace shmem
