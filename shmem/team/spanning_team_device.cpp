// SPDX-License-Identifier: Apache-2.0
// The device in a spanning team: the leaders use it, and store the outcome for the other members of their nodes.
#include <fmt/format.h>

#include "base/size_text.hpp"
#include "shmem/config/log.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/team/spanning_team.hpp"

namespace shmem {
namespace {

// The id of the process groups of blocks, in the bits that spanning_team.cpp explains. The same for both kinds: no two
// PEs are in both, and messages are matched by sender, too.
constexpr std::uint32_t kOfBlocks = std::uint32_t{3} << 30;

}  // namespace

InterNodeBarrier::Means SpanningTeam::means(WaitPolicy policy) const {
  policy.background = job_.policy.background;
  return {.job = job_,
          .network = *job_.network,
          .leaders = *group_,
          .pes = firsts_,
          .board = *job_.remote_board,
          .slot = slot_,
          .policy = policy,
          .interrupted = [this] { return is_given_up(); },
          .name = [this](int pe) { return fmt::format("PE {} (on {})", pe, job_.nodes.host(pe)); }};
}

Result<void> SpanningTeam::use_gba(const GbaMember& member, int /*ports*/) {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  auto ok = by_leader([&] {
    gba_ = std::make_unique<GbaSwitches>(means(member.policy), job_.options.gba_switch,
                                         GbaSwitches::Ids{.block = id_ | kOfBlocks, .firsts = id_ | kOfBlocks});
    refusals_.reset();
    auto joined = gba_->join(member);
    if (joined && gba_->active()) {
      joined = make_refusals();
    }
    report_gba();
    return joined;
  });
  if (ok) {
    const PortReport& report = view_.member(0).report;
    had_gba_ = gba_active_ = report.active != 0;
    votes_by_gba_ = report.votes != 0;
    gba_reason_ = report.reason.data();
  }
  return ok;
}

/// After join(), which all leaders end alike.
Result<void> SpanningTeam::make_refusals() {
  auto made = Refusals::create(job_, *group_, firsts_, slot_, id_);
  if (!made) {
    return made.error();
  }
  if (*made) {
    refusals_.emplace(**std::move(made));
  }
  return {};
}

Result<void> SpanningTeam::dissolve() {
  if (auto ok = ready(); !ok) {
    return ok;
  }
  if (had_gba_) {  // on all members
    had_gba_ = gba_active_ = votes_by_gba_ = false;
    auto ok = by_leader([this] {
      auto dissolved = gba_->dissolve();
      report_gba();
      return dissolved;
    });
    if (!ok) {
      return ok;
    }
  }
  return map_.size > 1 ? software_sync() : Result<void>{};
}

Result<void> SpanningTeam::sync_leaders_by(Algorithm named) {
  const NodesChoice before = group_->barrier_choice();
  group_->set_barrier({named, software_.nodes.tuning});
  auto ok = group_->barrier();
  group_->set_barrier(before);
  return ok;
}

Result<void> SpanningTeam::sync_leaders() {
  if (named_) {
    return sync_leaders_by(*named_);
  }
  if (!had_gba_) {
    return group_->barrier();
  }
  const bool before = gba_->active();
  auto ok = gba_->arrive_and_wait();
  report_gba();
  if (ok && gba_->active() != before) {
    log_gba_change(before);
  }
  return ok;
}

void SpanningTeam::log_gba_change(bool before) const {
  if (!gba_->first_of_block() || !job_.options.info) {
    return;
  }
  const std::string some = gba_->blocks() > 1 ? fmt::format("{} of its ", gba_->size()) : "its ";
  const std::string how = before ? fmt::format("by messages after {} through the device: {}",
                                               base::count(gba_->served(), "barrier"), gba_->reason())
                                 : "through the device again";
  log_info(job_.options.info_json,
           {"change", slot_, fmt::format("team {}: {}{} nodes synchronise {}", slot_, some, nodes(), how)});
}

void SpanningTeam::report_gba() const {
  PortReport& report = view_.member(0).report;
  report.by_device = gba_->by_device() ? 1 : 0;
  report.active = gba_->active() ? 1 : 0;
  report.votes = refusals_ ? 1 : 0;
  report.reason[gba_->reason().copy(report.reason.data(), report.reason.size() - 1)] = '\0';
}

BarrierPath SpanningTeam::follow_gba() {
  const BarrierPath messages = BarrierPath::software(among_nodes());
  if (!had_gba_) {
    return messages;
  }
  // The leader writes it only after all members of this node have arrived at the next sync.
  const PortReport& report = view_.member(0).report;
  if (gba_active_ != (report.active != 0)) {
    gba_active_ = !gba_active_;
    gba_reason_ = report.reason.data();
  }
  return report.by_device != 0 ? BarrierPath::device() : messages;
}

std::string SpanningTeam::gba_text(const std::string& choice) const {
  const std::string here =
      map_.size > 1 ? fmt::format("; the {} PEs of this node arrive by {}", map_.size, name_of(software_.algorithm))
                    : "";
  if (!gba_reason_.empty()) {
    const std::string note = message_note(software_.nodes.algorithm);
    return fmt::format(" ({}); its {} nodes synchronise by messages, not through a GBA: {}{}{}{}", choice, nodes(),
                       gba_reason_, note.empty() ? "" : "; ", note, here);
  }
  const int groups = gba_active_ && gba_ ? gba_->blocks() : 0;
  return fmt::format("; its {} nodes synchronise through it{}{}", nodes(),
                     groups > 1 ? fmt::format(", in {} groups", groups) : "", here);
}

}  // namespace shmem
