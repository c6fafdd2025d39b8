// SPDX-License-Identifier: Apache-2.0
#include "driver/barrier/recovery.hpp"

#include <cerrno>

namespace gba::barrier {
namespace {

// When a member has to vote while its port is being opened: all others wait for it.
constexpr std::chrono::milliseconds kLongestHold{20};
// A group that served fewer was no success.
constexpr std::uint64_t kFewBarriers = 1000;

}  // namespace

/// Rule 30.
CheckVote Recovery::offer(std::uint64_t sequence) {
  if (!pace_.due()) {
    return CheckVote::kOff;
  }
  if (place_.port->healthy() == nullptr) {
    place_.port->reopen();
    return CheckVote::kOff;
  }
  auto owned = place_.make_group(sequence);
  if (!owned) {
    // A device all of whose groups are taken is a good one, and so is one that gives this port no more.
    if (owned.error().code != std::errc::no_space_on_device && owned.error().code != std::errc{EDQUOT}) {
      place_.port->mark_suspect();
    }
    pace_.failed();
    return CheckVote::kOff;
  }
  group_.owned = *std::move(owned);
  *record_ = group_.owned->handle();  // before the word of this round, which the caller publishes next
  return CheckVote::kOffer;
}

/// Rule 31.
CheckVote Recovery::join() {
  place_.port->await_look(kLongestHold);
  auto joined = place_.join(*record_);
  if (!joined) {
    place_.port->mark_suspect();
    return CheckVote::kOff;
  }
  group_.membership = *std::move(joined);
  return CheckVote::kReady;
}

CheckVote Recovery::vote(std::uint64_t k) {
  if (is_offered(k)) {
    return join();
  }
  return member_ == 0 ? offer(k + kPeriod) : CheckVote::kOff;
}

bool Recovery::all_ready(std::uint64_t k) const {
  for (std::uint32_t i = 0; i < words_.size(); ++i) {
    if (!words_.voted(i, k, CheckVote::kReady)) {
      return false;
    }
  }
  return true;
}

std::optional<HeldGroup> Recovery::conclude(std::uint64_t k) {
  // No member can have overwritten the words of k yet: k + 2 cannot begin before we have entered k + 1.
  if (is_offered(k)) {
    offered_.reset();
    HeldGroup group = std::exchange(group_, {});
    if (all_ready(k)) {
      return group;
    }
    if (group.membership || group.owned) {
      place_.port->retire(std::move(group));  // what kept another member may keep the device from answering
    }
    pace_.failed();
  } else if (words_.voted(0, k, CheckVote::kOffer)) {
    offered_ = record_->sequence;
    place_.port->reopen_now();
  }
  return std::nullopt;
}

void Recovery::lost(std::uint64_t served) {
  place_.port->mark_suspect();
  place_.port->reopen();
  if (served < kFewBarriers) {
    pace_.failed();
  } else {
    pace_.succeeded();
  }
}

}  // namespace gba::barrier
