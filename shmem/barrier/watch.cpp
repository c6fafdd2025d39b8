// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/watch.hpp"

#include <algorithm>

#include "shmem/log.hpp"
#include "shmem/team/peers.hpp"

namespace shmem {
namespace {

constexpr std::chrono::milliseconds kLookAtPeers{500};
constexpr int kMostNamed = 16;
// The longer way to find out that a process has ended is for so many of the missing at a time, and so many of those who
// have come and may have died before they did their part for others.
constexpr int kMostZombieLooks = 16;

Clock::time_point after(Clock::time_point now, std::chrono::nanoseconds time) {
  return time < Clock::time_point::max() - now ? now + time : Clock::time_point::max();
}

}  // namespace

bool BarrierWatch::missing(int member) const {
  const TeamSync& theirs = view_.member(member);
  // Relaxed: pairs with Team::enter() and Carrier::begin(); what the member stored before is not looked at.
  return (name_.call ? theirs.calls : theirs.entered).load(std::memory_order_relaxed) < name_.count;
}

const std::atomic<std::uint64_t>& BarrierWatch::left(int member) const {
  const TeamSync& theirs = view_.member(member);
  return name_.call ? theirs.calls_over : theirs.left;
}

bool BarrierWatch::differs(int member) const {
  const TeamSync& theirs = view_.member(member);
  // Acquire: pairs with Team::enter(); how it entered is visible with what it entered.
  return name_.split && theirs.entered.load(std::memory_order_acquire) == name_.count &&
         (theirs.split.load(std::memory_order_relaxed) == name_.count) != *name_.split;
}

int BarrierWatch::first_present() const {
  int member = 0;
  while (member < view_.size() && missing(member)) ++member;
  return member;
}

bool BarrierWatch::somebody_died() {
  int zombie_looks = 0;
  for (int i = 0; i < view_.size(); ++i) {
    const int member = (zombie_ + i) % view_.size();
    if (!missing(member)) continue;
    const bool look_closely = zombie_looks++ < kMostZombieLooks;
    const int pe = map_.pe(member);
    // Looked at in this order: a member that arrived and then ended is not missing.
    if ((look_closely ? is_dead_or_zombie(job_, pe) : is_dead(job_, pe)) && missing(member)) return true;
    if (zombie_looks == kMostZombieLooks) zombie_ = member;
  }
  return false;
}

bool BarrierWatch::somebody_present_died() {
  const int looks = std::min(kMostZombieLooks, view_.size());
  for (int i = 0; i < looks; ++i, present_ = (present_ + 1) % view_.size()) {
    if (missing(present_) || left(present_).load(std::memory_order_relaxed) >= name_.count) continue;
    // Looked at in this order. Acquire: pairs with Team::leave(), whose PE may then have ended in good order.
    if (is_dead_or_zombie(job_, map_.pe(present_)) && left(present_).load(std::memory_order_acquire) < name_.count) {
      dead_ = present_;
      return true;
    }
  }
  return false;
}

void BarrierWatch::begin(Clock::time_point now) {
  begun_ = true;
  began_ = now;
  next_look_ = after(now, kLookAtPeers);
  const auto timeout = job_.options.barrier_timeout;
  const bool limited = limit_ || timeout.count() > 0;
  deadline_ = limited ? after(now, limit_.value_or(timeout)) : Clock::time_point::max();
  const auto warning = job_.options.barrier_warning;
  next_warning_ = warning.count() > 0 ? after(now, warning) : Clock::time_point::max();
}

std::errc BarrierWatch::operator()() {
  if (job_.bootstrap->aborted()) {
    return std::errc::operation_canceled;
  }
  const auto now = Clock::now();
  if (!begun_) {
    begin(now);
  }
  if (now >= deadline_) {
    return std::errc::timed_out;
  }
  if (now >= next_look_) {
    next_look_ = after(now, kLookAtPeers);
    if (somebody_died() || somebody_present_died()) {
      return std::errc::owner_dead;
    }
    if (!differing_text().empty()) {
      return std::errc::protocol_error;
    }
  }
  if (now >= next_warning_) {
    next_warning_ = after(now, 2 * job_.options.barrier_warning);
    warn();
  }
  return {};
}

std::chrono::nanoseconds BarrierWatch::longest_sleep() const {
  const std::chrono::nanoseconds left = deadline_ - Clock::now();
  return std::clamp<std::chrono::nanoseconds>(left, std::chrono::nanoseconds{0}, kLongestSleep);
}

void BarrierWatch::warn() {
  // One of those that wait is enough to say it.
  if (!warns_ || first_present() != view_.me()) {
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began_);
  log(LogLevel::kWarn, "%s has taken %lld s; it waits for%s", subject().c_str(),
      static_cast<long long>(seconds.count()), missing_text().c_str());
}

std::string BarrierWatch::subject() const {
  return "shmem: PE " + std::to_string(job_.world_me()) + (name_.call ? ": collective call " : ": barrier ") +
         std::to_string(name_.count) + " of team " + std::to_string(name_.team) + " (" + name_.algorithm + ")";
}

std::string BarrierWatch::missing_text() const {
  std::string text;
  int named = 0;
  for (int i = 0; i < view_.size(); ++i) {
    if (!missing(i) && i != dead_) {
      continue;
    }
    if (++named > kMostNamed) {
      return text + " and more";
    }
    text += (named > 1 ? ", " : " ") + describe_pe(job_, map_.pe(i));
  }
  return named > 0 ? text : " nobody: all have arrived";
}

std::string BarrierWatch::differing_text() const {
  for (int i = 0; i < view_.size(); ++i) {
    if (differs(i)) {
      return describe_pe(job_, map_.pe(i)) +
             (*name_.split ? " makes it in one call" : " has come by shmemx_barrier_arrive");
    }
  }
  return "";
}

std::string BarrierWatch::limit_text() const {
  return limit_ ? std::to_string(limit_->count()) + " ns"
                : std::to_string(job_.options.barrier_timeout.count()) + " ms (SHMEM_BARRIER_TIMEOUT)";
}

std::string BarrierWatch::explain(std::errc error) const {
  std::string text = subject();
  switch (error) {
    case std::errc::timed_out:
      text += " timed out after " + limit_text();
      break;
    case std::errc::owner_dead:
      text += " cannot complete: a PE has died";
      break;
    case std::errc::protocol_error:
      text += std::string(*name_.split ? " was begun with shmemx_barrier_arrive" : " is made in one call") + ", but " +
              differing_text() + ": all members make a barrier the same way";
      break;
    case std::errc::operation_canceled:
      text += " was given up because the job was ended: " + job_.bootstrap->aborted().value_or("");
      break;
    default:
      text += " failed: " + std::make_error_code(error).message();
      break;
  }
  return text + "; it waited for" + missing_text();
}

}  // namespace shmem
