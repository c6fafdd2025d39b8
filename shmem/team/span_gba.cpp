// SPDX-License-Identifier: Apache-2.0
// How a team on several nodes uses the device: its leaders do, and tell the others on their nodes.
#include "shmem/log.hpp"
#include "shmem/team/span.hpp"

namespace shmem {
namespace {

// Teams, their leaders and active sets have numbers with other highest bits (span.cpp, context_nodes.cpp). One is
// enough for both kinds of groups: no two PEs are in both, and messages are told apart by who sends them, too.
constexpr std::uint32_t kOfBlocks = std::uint32_t{3} << 30;

}  // namespace

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
    gba_ = std::make_unique<GbaSwitches>(means(member.policy), job_.options.gba_switch,
                                         GbaSwitches::Numbers{.block = id_ | kOfBlocks, .firsts = id_ | kOfBlocks});
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
  if (!had_gba_) return group_->barrier();
  const bool before = gba_->active();
  auto ok = gba_->meet();
  report_gba();
  if (ok && gba_->active() != before && gba_->first_of_block() && job_.options.info) {
    const std::string some = gba_->blocks() > 1 ? std::to_string(gba_->size()) + " of its " : "its ";
    const std::string how = before ? "by messages after " + std::to_string(gba_->served()) +
                                         " barriers through the device: " + gba_->reason()
                                   : "through the device again";
    log(LogLevel::kInfo, "shmem: team %d: %s%d nodes meet %s", slot_, some.c_str(), nodes(), how.c_str());
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
