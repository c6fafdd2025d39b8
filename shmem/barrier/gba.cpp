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
      trouble_ = "another member lost the device";
      return kPull;
    }
    if (const std::errc error = watch(); error != std::errc{}) {
      return error;
    }
    status = gba_group_sleep(group_.get(), sequence_, static_cast<std::uint64_t>(sleep.count()));
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

std::errc GbaBarrier::arrive_and_wait(std::uint64_t k, BarrierWatch& watch) {
  sequence_ = k;
  publish_vote(view_.mine(), k, off_ ? Vote::kOff : Vote::kOn);
  if (!off_) {
    gba_group_arrive(group_.get(), sequence_);
    const std::errc error = await_release(watch);
    by_device_ = error == std::errc{};
    if (error != kPull) {
      return error;
    }
    off_ = true;
    publish_vote(view_.mine(), k, Vote::kPull);  // before the first look at others' words: they may wait for this one
  }
  by_device_ = false;
  return pull(watch);
}

}  // namespace shmem
