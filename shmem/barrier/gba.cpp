// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba.hpp"

#include <algorithm>
#include <cerrno>

namespace shmem {
namespace {

constexpr std::chrono::nanoseconds kFirstSleep = std::chrono::milliseconds{1};
// Pulls are rare, at most two for each loss of the device, and nobody wakes them.
constexpr std::chrono::nanoseconds kLongestPullNap = std::chrono::milliseconds{1};
constexpr std::errc kPull = std::errc::not_connected;
constexpr int kOthersPull = 1;  // not an error of the driver's
constexpr const char* kOthersTrouble = "another member lost the device";

}  // namespace

bool GbaBarrier::anybody_says(Vote vote) const {
  for (int i = 0; i < view_.size(); ++i) {
    if (voted(view_.member(i), sequence_, vote)) {
      return true;
    }
  }
  return false;
}

bool GbaBarrier::somebody_pulls() const {
  // OFF: that member does not ring k. PULL: it has trouble; perhaps its arrival never reached a device that knows
  // nothing of its trouble, and then nobody else would tell us that k will not be released (uapi rule 27).
  return anybody_says(Vote::kOff) || anybody_says(Vote::kPull);
}

std::errc GbaBarrier::await_release(BarrierWatch& watch) {
  int status = -EAGAIN;
  spin_until(policy_, [&] { return (status = gba_group_test(group_.get(), sequence_)) != -EAGAIN; });
  for (auto sleep = kFirstSleep; status == -EAGAIN;
       sleep = std::min<std::chrono::nanoseconds>(sleep * 2, kLongestSleep)) {
    // Before each sleep and after each: another member's trouble, then our own end.
    if (somebody_pulls()) {
      trouble_ = kOthersTrouble;
      return kPull;
    }
    if (const std::errc error = watch(); error != std::errc{}) {
      return error;
    }
    const auto nap = std::min<std::chrono::nanoseconds>(sleep, watch.longest_sleep());
    status = gba_group_sleep(group_.get(), sequence_, static_cast<std::uint64_t>(nap.count()));
  }
  if (status != 0) {
    trouble_ = gba_error_text();
    return kPull;
  }
  return {};
}

std::errc GbaBarrier::pull(BarrierWatch& watch) {
  for (int i = 0; i < view_.size(); ++i) {
    const std::errc error = wait_polling(
        policy_, kLongestPullNap, [&] { return has_arrived(view_.member(i), sequence_); }, watch);
    if (error != std::errc{}) {
      return error;
    }
  }
  // Nobody can have overwritten these words yet: k + 2 cannot begin before we have entered k + 1.
  over_ = anybody_says(Vote::kOff);
  return {};
}

void GbaBarrier::arrive(std::uint64_t k) {
  sequence_ = k;
  next_look_ = {};
  publish_vote(view_.mine(), k, off_ ? Vote::kOff : Vote::kOn);
  if (!off_) {
    gba_group_arrive(group_.get(), sequence_);
  }
}

void GbaBarrier::begin_to_pull() {
  off_ = true;
  publish_vote(view_.mine(), sequence_, Vote::kPull);  // before the first look at others' words: they may wait for this
}

std::errc GbaBarrier::finish(BarrierWatch& watch) {
  if (!off_) {
    const std::errc error = await_release(watch);
    by_device_ = error == std::errc{};
    if (error != kPull) {
      return error;
    }
    begin_to_pull();
  }
  by_device_ = false;
  return pull(watch);
}

std::errc GbaBarrier::arrive_and_wait(std::uint64_t k, BarrierWatch& watch) {
  arrive(k);
  return finish(watch);
}

int GbaBarrier::look() {
  const int status = gba_group_test(group_.get(), sequence_);
  if (status != -EAGAIN) {
    return status;
  }
  const auto now = Clock::now();
  if (next_look_ == Clock::time_point{}) {
    look_again_ = kFirstSleep;
  } else if (now < next_look_) {
    return status;
  } else if (somebody_pulls()) {
    return kOthersPull;
  } else {
    look_again_ = std::min<std::chrono::nanoseconds>(look_again_ * 2, kLongestSleep);
  }
  next_look_ = now + look_again_;
  // Repeats the arrival, should it be lost, and does not sleep.
  return gba_group_sleep(group_.get(), sequence_, 0);
}

bool GbaBarrier::all_arrived() const {
  for (int i = 0; i < view_.size(); ++i) {
    if (!has_arrived(view_.member(i), sequence_)) {
      return false;
    }
  }
  return true;
}

bool GbaBarrier::test() {
  if (!off_) {
    const int status = look();
    by_device_ = status == 0;
    if (status == 0 || status == -EAGAIN) {
      return status == 0;
    }
    trouble_ = status == kOthersPull ? kOthersTrouble : gba_error_text();
    begin_to_pull();
  }
  by_device_ = false;
  if (!all_arrived()) {
    return false;
  }
  over_ = anybody_says(Vote::kOff);  // as in pull()
  return true;
}

}  // namespace shmem
