// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/wait_monitor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shmem/config/log.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/layout/survival.hpp"

namespace shmem {
namespace {

/// A PE that ends mostly does so while others already wait for it, or soon after they have begun to. A launcher that
/// tells of it is not overtaken, even if it is late.
constexpr std::chrono::milliseconds kEarlyLooks{20};
constexpr std::chrono::milliseconds kEarly{200};

Clock::time_point after(Clock::time_point now, std::chrono::nanoseconds time) {
  return time < Clock::time_point::max() - now ? now + time : Clock::time_point::max();
}

}  // namespace

void WaitMonitor::begin(Clock::time_point now) {
  begun_ = true;
  began_ = now;
  until_look_ = job_.bootstrap->has_launcher_that_tells() ? look_each_
                                                          : std::min<std::chrono::nanoseconds>(kEarlyLooks, look_each_);
  next_look_ = after(now, until_look_);
  const auto timeout = job_.options.barrier_timeout;
  const bool limited = limit_ || timeout.count() > 0;
  deadline_ = limited ? after(now, limit_.value_or(timeout)) : Clock::time_point::max();
  const auto warning = job_.options.barrier_warning;
  next_warning_ = warns_ && warning.count() > 0 ? after(now, warning) : Clock::time_point::max();
}

std::errc WaitMonitor::operator()() {
  if (const std::errc error = job_.ended(); error != std::errc{}) {
    return error;
  }
  const auto now = Clock::now();
  if (!begun_) {
    begin(now);
  }
  if (now >= deadline_) {
    return std::errc::timed_out;
  }
  if (now >= next_look_) {
    until_look_ = now - began_ < kEarly ? until_look_ : std::min(2 * until_look_, look_each_);
    next_look_ = after(now, until_look_);
    if (const std::errc error = look(); error != std::errc{}) {
      return error;
    }
  }
  if (now >= next_warning_) {
    next_warning_ = after(now, 2 * job_.options.barrier_warning);
    warn(std::chrono::duration_cast<std::chrono::seconds>(now - began_));
  }
  return {};
}

std::chrono::nanoseconds WaitMonitor::longest_sleep() const {
  const std::chrono::nanoseconds left = std::min(deadline_, next_look_) - Clock::now();
  return std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds{0}, kLongestSleep);
}

void WaitMonitor::warn(std::chrono::seconds waited) const {
  if (const std::string waiter = subject(); !waiter.empty()) {
    const std::string text = fmt::format("{} has taken {} s; it waits for {}", waiter, waited.count(), awaited());
    log(LogLevel::kWarn, "%s", text.c_str());
  }
}

std::string WaitMonitor::ending(std::errc error) const {
  switch (error) {
    case std::errc::timed_out:
      return limit_
                 ? fmt::format("timed out after {} ns", limit_->count())
                 : fmt::format("timed out after {} ms (SHMEM_BARRIER_TIMEOUT)", job_.options.barrier_timeout.count());
    case std::errc::operation_canceled: {
      const auto reason = job_.bootstrap->aborted();
      return reason ? "was given up because the job was ended: " + *reason
                    : "was given up because another core of this PE failed";
    }
    default:
      return "failed: " + std::make_error_code(error).message();
  }
}

std::string WaitMonitor::explain(std::errc error) const {
  const std::string waiter = subject();
  return waiter.empty() ? ending(error) : fmt::format("{} {}; it waited for {}", waiter, ending(error), awaited());
}

std::string_view waiter_in(std::string_view message) {
  // What the leaders of nodes do for the others has names of its own.
  for (const std::string_view between : {", the leader of this node, ", " PEs: message from "}) {
    if (message.find(between) != std::string_view::npos) {
      return "a call between nodes";
    }
  }
  // After "shmem: PE 3: ", where the call may come first: "shmem_barrier: the wait for the 2 PEs ...".
  for (const std::string_view before : {"shmem: ", ": "}) {
    if (const auto begin = message.find(before); begin != std::string_view::npos) {
      message.remove_prefix(begin + before.size());
    }
  }
  if (message.starts_with("the job was ended")) {
    return "an exchange of all PEs";  // by the bootstrap, at start for instance, whose message names no call
  }
  std::size_t end = message.size();
  for (const std::string_view after : {": ", " (", " was given up", " cannot complete", " timed out", " failed"}) {
    end = std::min(end, message.find(after));
  }
  return message.substr(0, end);
}

bool BarrierMonitor::is_missing(int member) const {
  const TeamSync& theirs = view_.member(member);
  // Relaxed: pairs with Team::enter() and EagerChannel::begin(); what the member stored before is not read.
  return (name_.call ? theirs.calls : theirs.entered).load(std::memory_order_relaxed) < name_.count;
}

const std::atomic<std::uint64_t>& BarrierMonitor::left(int member) const {
  const TeamSync& theirs = view_.member(member);
  return name_.call ? theirs.calls_over : theirs.left;
}

bool BarrierMonitor::differs(int member) const {
  const TeamSync& theirs = view_.member(member);
  // Acquire: pairs with Team::enter(); `split` is visible with the count that it belongs to.
  return name_.split && theirs.entered.load(std::memory_order_acquire) == name_.count &&
         (theirs.split.load(std::memory_order_relaxed) == name_.count) != *name_.split;
}

bool BarrierMonitor::missing_member_died() {
  int zombie_looks = 0;
  for (int i = 0; i < view_.size(); ++i) {
    const int member = (next_missing_ + i) % view_.size();
    if (!is_missing(member)) {
      continue;
    }
    const bool look_closely = zombie_looks++ < kMostZombieLooks;
    const int pe = map_.pe(member);
    // In this order: a member that arrived and then ended is not missing.
    if ((was_replaced(job(), pe, view_.admissions()) ||
         (look_closely ? is_dead_or_zombie(job(), pe) : is_dead(job(), pe))) &&
        is_missing(member)) {
      return true;
    }
    if (zombie_looks == kMostZombieLooks) {
      next_missing_ = member;
    }
  }
  return false;
}

bool BarrierMonitor::arrived_member_died() {
  const int looks = std::min(kMostZombieLooks, view_.size());
  for (int i = 0; i < looks; ++i, next_arrived_ = (next_arrived_ + 1) % view_.size()) {
    const int member = next_arrived_;
    if (is_missing(member) || left(member).load(std::memory_order_relaxed) >= name_.count) {
      continue;
    }
    // In this order. Acquire: pairs with Team::leave(), after which the PE may have ended normally.
    if (is_gone(job(), map_.pe(member), view_.admissions()) &&
        left(member).load(std::memory_order_acquire) < name_.count) {
      dead_ = member;
      return true;
    }
  }
  return false;
}

std::errc BarrierMonitor::look() {
  if (missing_member_died() || arrived_member_died() || first_to_shrink(view_)) {
    return std::errc::owner_dead;
  }
  return differing_text().empty() ? std::errc{} : std::errc::protocol_error;
}

void BarrierMonitor::warn(std::chrono::seconds waited) const {
  int first_arrived = 0;
  while (first_arrived < view_.size() && is_missing(first_arrived)) {
    ++first_arrived;
  }
  if (first_arrived == view_.me()) {  // one warning is enough
    WaitMonitor::warn(waited);
  }
}

std::string BarrierMonitor::subject() const {
  const std::string team = name_.team < kMaxTeams ? fmt::format("team {}", name_.team)
                                                  : fmt::format("active set {}", name_.team - kMaxTeams);
  return fmt::format("shmem: PE {}: {} {} of {} ({})", job().world_me(), name_.call ? "collective call" : "barrier",
                     name_.count - name_.excluded, team, name_.algorithm);
}

std::string BarrierMonitor::awaited() const {
  std::string missing = names_of(map_, [this](int member) { return is_missing(member) || member == dead_; });
  if (!missing.empty()) {
    return missing;
  }
  // One that is stopped may owe the others their release.
  const std::string stopped = names_of(map_, [this](int member) {
    return left(member).load(std::memory_order_relaxed) < name_.count && is_stopped(job(), map_.pe(member));
  });
  return stopped.empty() ? "no PE: all have arrived" : "PEs that have arrived and do not go on: " + stopped;
}

std::string BarrierMonitor::differing_text() const {
  for (int i = 0; i < view_.size(); ++i) {
    if (differs(i)) {
      return describe_pe(job(), map_.pe(i)) +
             (*name_.split ? " makes it in one call" : " has arrived by shmemx_barrier_arrive");
    }
  }
  return "";
}

std::string BarrierMonitor::ending(std::errc error) const {
  switch (error) {
    case std::errc::owner_dead:
      if (was_left_out(view_, view_.me())) {
        return "cannot complete: this PE was left out when the team was shrunk";
      }
      if (const auto member = first_to_shrink(view_)) {
        return fmt::format("cannot complete: PE {} has called shmemx_team_shrink", job().nodes.world(map_.pe(*member)));
      }
      return "cannot complete: a PE has ended";
    case std::errc::protocol_error:
      return fmt::format("{}, but {}: all members make a barrier the same way",
                         *name_.split ? "was begun with shmemx_barrier_arrive" : "is made in one call",
                         differing_text());
    default:
      return WaitMonitor::ending(error);
  }
}

}  // namespace shmem
