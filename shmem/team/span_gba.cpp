// SPDX-License-Identifier: Apache-2.0
// How a team on several nodes uses the device: its leaders do, and tell the others on their nodes.
#include "shmem/log.hpp"
#include "shmem/team/span.hpp"

namespace shmem {

GbaSpan::Means Span::means(WaitPolicy policy) const {
  policy.background = job_.policy.background;
  const Options& options = job_.options;
  const auto shorter = std::min(options.barrier_timeout, options.network_timeout);
  return {.network = *job_.network,
          .leaders = *group_,
          .pes = firsts_,
          .board = *job_.far_board,
          .slot = slot_,
          .policy = policy,
          .name = [this](int pe) { return "PE " + std::to_string(pe) + " (on " + job_.nodes.host(pe) + ")"; },
          .check = [this]() -> Result<void> {
            const auto reason = job_.bootstrap->aborted();
            return reason ? fail(std::errc::operation_canceled, "the job was ended: " + *reason) : Result<void>{};
          },
          .limit = shorter.count() != 0 ? shorter : std::max(options.barrier_timeout, options.network_timeout)};
}

Result<void> Span::use_gba(const Meet& meet, const GbaMember& member) {
  auto ok = by_leader(meet, [&] {
    gba_ = std::make_unique<GbaSpan>(means(member.policy));
    auto joined = gba_->join(member);
    report_gba();
    return joined;
  });
  if (ok) {
    const PortReport& report = here_.member(0).report;
    had_gba_ = gba_active_ = report.active != 0;
    gba_reason_ = report.reason.data();
  }
  return ok;
}

Result<void> Span::give_up_gba(const Meet& meet) {
  if (!had_gba_) return {};  // on all members
  had_gba_ = gba_active_ = false;
  return by_leader(meet, [this] {
    auto ok = gba_->dissolve();
    report_gba();
    return ok;
  });
}

Result<void> Span::meet_leaders() {
  if (!gba_ || !gba_->active()) return group_->barrier();
  auto ok = gba_->meet();
  report_gba();
  if (ok && !gba_->active() && my_node_ == 0 && job_.options.info) {
    log(LogLevel::kInfo, "shmem: team %d: its %d nodes meet by messages after %llu barriers through the device: %s",
        slot_, nodes(), static_cast<unsigned long long>(gba_->served()), gba_->reason().c_str());
  }
  return ok;
}

void Span::report_gba() const {
  PortReport& report = here_.member(0).report;
  report.by_device = gba_->by_device() ? 1 : 0;
  report.active = gba_->active() ? 1 : 0;
  report.reason[gba_->reason().copy(report.reason.data(), report.reason.size() - 1)] = '\0';
}

void Span::follow_gba() {
  if (!had_gba_) return;
  // The leader writes it again once all of this node have come to the next sync.
  const PortReport& report = here_.member(0).report;
  by_device_ += report.by_device;
  if (gba_active_ == (report.active != 0)) return;
  gba_active_ = !gba_active_;
  gba_reason_ = report.reason.data();
}

}  // namespace shmem
