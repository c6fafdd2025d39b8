// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/gba_recovery.hpp"

namespace shmem {
namespace {

// Of a member whose port is being opened when it has to vote: all others wait for it.
constexpr std::chrono::milliseconds kLongestHold{20};
// A group that served fewer was no success.
constexpr std::uint64_t kFewBarriers = 1000;

}  // namespace

Vote GbaRecovery::offer(std::uint64_t sequence) {
  if (member_.port == nullptr || !pace_.due()) {
    return Vote::kOff;
  }
  if (member_.port->well() == nullptr) {
    if (member_.port->mending()) {
      return Vote::kOff;
    }
    if (asked_) {
      pace_.failed();
    } else {
      member_.port->mend();
    }
    asked_ = !asked_;
    return Vote::kOff;
  }
  asked_ = false;
  auto owned = offer_group(view_, member_, sequence);
  if (!owned) {
    member_.port->doubt();
    pace_.failed();
    return Vote::kOff;
  }
  group_.owned = *std::move(owned);
  return Vote::kOffer;
}

Vote GbaRecovery::join() {
  if (!member_.wanted || member_.port == nullptr) {
    return Vote::kOff;
  }
  member_.port->await_mended(kLongestHold);
  auto joined = join_offer(view_, member_);
  if (!joined) {
    member_.port->doubt();
    return Vote::kOff;
  }
  group_.membership = *std::move(joined);
  return Vote::kReady;
}

void GbaRecovery::vote(std::uint64_t k) {
  Vote vote = Vote::kOff;
  if (is_offered(k)) {
    vote = join();
  } else if (view_.me() == 0) {
    vote = offer(k + kPeriod);
  }
  publish_vote(view_.mine(), k, vote);
}

std::optional<GbaGroup> GbaRecovery::conclude(std::uint64_t k) {
  // Nobody can have overwritten the words of k yet: k + 2 cannot begin before we have entered k + 1.
  if (is_offered(k)) {
    offered_.reset();
    GbaGroup group = std::exchange(group_, {});
    if (!first_against(view_, k, Vote::kReady)) {
      return group;
    }
    pace_.failed();
  } else if (voted(view_.member(0), k, Vote::kOffer)) {
    offered_ = view_.member(0).offer.sequence;
    if (member_.port != nullptr) {
      member_.port->mend();
    }
  }
  return std::nullopt;
}

void GbaRecovery::lost_again(std::uint64_t served) {
  if (served < kFewBarriers) {
    pace_.failed();
  } else {
    pace_.succeeded();
  }
}

}  // namespace shmem
