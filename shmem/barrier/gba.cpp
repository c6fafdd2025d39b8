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

void GbaBarrier::publish_arrival(Vote vote) {
  // Release: pairs with has_arrived() and anybody_off(). The doorbell store that follows is a release of its own, so
  // whoever is released by the device can see this word too.
  view_.mine().arrival.word[sequence_ & 1].store(sequence_ << 2 | static_cast<std::uint64_t>(vote),
                                                 std::memory_order_release);
}

bool GbaBarrier::anybody_off(std::uint64_t k) const {
  const std::uint64_t off = k << 2 | static_cast<std::uint64_t>(Vote::kOff);
  for (int i = 0; i < view_.size(); ++i) {
    if (view_.member(i).arrival.word[k & 1].load(std::memory_order_acquire) == off) {
      return true;
    }
  }
  return false;
}

bool GbaBarrier::somebody_pulls() const {
  // OFF at k: that member does not ring k. OFF at k + 1: it has pulled k, perhaps because its arrival at k never
  // reached a device that knows nothing of its trouble; then the device will not release k, and nobody else would tell
  // us.
  return anybody_off(sequence_) || anybody_off(sequence_ + 1);
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
  over_ = anybody_off(sequence_);
  return {};
}

std::errc GbaBarrier::arrive_and_wait(std::uint64_t k, BarrierWatch& watch) {
  sequence_ = k;
  publish_arrival(off_ ? Vote::kOff : Vote::kOn);
  if (!off_) {
    gba_group_arrive(group_.get(), sequence_);
    const std::errc error = await_release(watch);
    by_device_ = error == std::errc{};
    if (error != kPull) {
      return error;
    }
    off_ = true;
  }
  by_device_ = false;
  return pull(watch);
}

}  // namespace shmem
