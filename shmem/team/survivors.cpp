// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/survivors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shmem/bootstrap/message_text.hpp"
#include "shmem/config/log.hpp"

namespace shmem {
namespace {

constexpr int kSlotBits = 32;
/// The interval in which a waiter looks for members that have died.
constexpr std::chrono::milliseconds kDeathLook{20};
constexpr std::chrono::milliseconds kLongestNap{2};
/// How long a member that may make the new team's slot has for that before the next one does it, too.
constexpr std::chrono::milliseconds kTurnTime{200};

}  // namespace

std::chrono::milliseconds Survivors::limit() const {
  const auto limit = job_.options.barrier_timeout;
  return limit.count() > 0 ? limit : job_.options.bootstrap_timeout;
}

void Survivors::begin() {
  ++number_;
  words(view_.me()).begun.store(number_, std::memory_order_release);  // pairs with has_begun()
}

void Survivors::keep(const std::vector<int>& left) {
  shrunk_ = true;
  left_out_.assign(left_out_.size(), true);
  for (const int member : left) {
    left_out_[static_cast<std::size_t>(member)] = false;
  }
}

void Survivors::warn_of_late(const std::string& late) const {
  log(LogLevel::kWarn, "shmem: PE %d: shmemx_team_shrink of team %d leaves out PEs that did not call it within %s: %s",
      job_.world_me(), slot_, seconds_text(limit()).c_str(), late.c_str());
}

Error Survivors::given_up(std::errc error) const {
  return fail(error,
              fmt::format("shmem: PE {}: shmemx_team_shrink of team {} was given up because the job was ended: {}",
                          job_.world_me(), slot_, job_.bootstrap->aborted().value_or("no reason is known")));
}

bool LocalSurvivors::has_begun(int member) const {
  // Acquire: pairs with agree(); what the member did on the old team comes before the new one.
  return words(member).begun.load(std::memory_order_acquire) >= number_;
}

bool LocalSurvivors::someone_has_voted() const {
  for (int i = 0; i < map_.size; ++i) {
    if (verdict_on(view_, i).number() >= number_) {
      return true;
    }
  }
  return false;
}

bool LocalSurvivors::all_here_or_dead() const {
  for (int i = 0; i < map_.size; ++i) {
    if (!has_left_out(i) && !has_begun(i) && !has_died(i)) {
      return false;
    }
  }
  return true;
}

Result<void> LocalSurvivors::wait_for_others() const {
  const auto deadline = Clock::now() + limit();
  auto next_look = Clock::now();
  bool all = false;
  const auto ready = [&] {
    if (someone_has_voted()) {
      return true;
    }
    if (const auto now = Clock::now(); !all && now >= next_look) {
      next_look = now + kDeathLook;
      all = all_here_or_dead();
    }
    return all;
  };
  const auto check = [&] { return Clock::now() < deadline ? job_.ended() : std::errc::timed_out; };
  const std::errc error = wait_polling(job_.policy, kLongestNap, ready, check);
  if (error == std::errc::timed_out) {
    log_late();
    return {};
  }
  if (error == std::errc{}) {
    return {};
  }
  return given_up(error);
}

void LocalSurvivors::log_late() const {
  std::string late;
  for (int i = 0; i < map_.size; ++i) {
    if (!has_left_out(i) && !has_begun(i) && !has_died(i)) {
      late += (late.empty() ? "" : ", ") + describe_pe(job_, map_.pe(i));
    }
  }
  warn_of_late(late);
}

void LocalSurvivors::vote() const {
  for (int i = 0; i < map_.size; ++i) {
    if (has_left_out(i)) {
      continue;  // its verdict stays
    }
    Verdict seen = verdict_on(view_, i);
    if (seen.number() >= number_) {
      continue;
    }
    const bool in = has_begun(i) && !has_died(i);
    // Once: the first vote counts. Acquire and release: the readers of a verdict see what its voter has seen.
    while (seen.number() < number_ &&
           !words(i).verdict.compare_exchange_weak(seen.word, 2 * number_ + (in ? 1 : 0), std::memory_order_acq_rel)) {
    }
  }
}

Error Survivors::left_out() const {
  return fail(
      std::errc::state_not_recoverable,
      fmt::format("shmem: PE {} was left out when team {} was shrunk, because it did not call shmemx_team_shrink "
                  "in time; it is not in the new team, and its calls on the old one fail",
                  job_.world_me(), slot_));
}

Result<WhoIsLeft> LocalSurvivors::agree(std::uint32_t id) {
  if (was_left_out(view_, view_.me())) {
    return left_out();
  }
  begin();
  if (auto ok = wait_for_others(); !ok) {
    return ok.error();
  }
  vote();
  std::vector<int> left;
  for (int i = 0; i < map_.size; ++i) {
    if (has_left_out(i)) {
      continue;
    }
    const Verdict verdict = verdict_on(view_, i);
    if (verdict.number() != number_) {
      return left_out();  // the others are in the next shrink, without this member
    }
    if (verdict.is_in()) {
      left.push_back(i);
    }
  }
  if (was_left_out(view_, view_.me())) {
    return left_out();
  }
  keep(left);
  return WhoIsLeft{std::move(left), id};
}

void Survivors::wait_for_turn(const std::vector<int>& left) const {
  const auto turn = std::ranges::find(left, view_.me()) - left.begin();
  const auto deadline = Clock::now() + turn * kTurnTime;
  auto next_look = Clock::now() + kDeathLook;
  const auto made = [this] { return words(0).made.load(std::memory_order_acquire) >> kSlotBits >= number_; };
  const auto check = [&] {
    const auto now = Clock::now();
    bool first = now >= deadline;
    if (!first && now >= next_look) {
      next_look = now + kDeathLook;
      first = std::all_of(left.begin(), left.begin() + turn, [this](int member) { return has_died(member); });
    }
    return first ? std::errc::timed_out : std::errc{};
  };
  // Either way this member goes on.
  static_cast<void>(wait_polling(job_.policy, kLongestNap, made, check));
}

Result<std::optional<int>> Survivors::slot_made() const {
  // Acquire: pairs with offer_slot(), before which the words in the slot were prepared.
  const std::uint64_t made = words(0).made.load(std::memory_order_acquire);
  if (made >> kSlotBits > number_) {
    return left_out();
  }
  if (made >> kSlotBits < number_) {
    return std::optional<int>{};
  }
  return std::optional<int>(static_cast<int>(static_cast<std::uint32_t>(made)) - 1);
}

bool Survivors::offer_slot(int slot) const {
  auto& made = words(0).made;
  std::uint64_t seen = made.load(std::memory_order_acquire);
  const std::uint64_t mine = number_ << kSlotBits | static_cast<std::uint32_t>(slot + 1);
  while (seen >> kSlotBits < number_) {
    if (made.compare_exchange_weak(seen, mine, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

}  // namespace shmem
