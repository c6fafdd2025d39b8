// SPDX-License-Identifier: Apache-2.0
// What members tell each other about the device, one word for each of the two barriers that can be under way.
#pragma once

#include "shmem/team/sync_view.hpp"

namespace shmem {

/// uapi rule 25.
enum class Vote : std::uint64_t {
  kOn = 0,     // rings the device
  kOff = 1,    // does not
  kPull = 2,   // rang, and had trouble since
  kOffer = 2,  // of member 0 in a check round: a group can be joined
  kReady = 3,  // has joined it
};

/// Called by `mine`'s owner alone.
inline void publish_vote(TeamSync& mine, std::uint64_t k, Vote vote) {
  // Release: pairs with has_arrived() and voted(). Where a doorbell is rung next, that store is a release of its own,
  // so whoever is released by the device can see this word too.
  mine.arrival.word[k & 1].store(k << 2 | static_cast<std::uint64_t>(vote), std::memory_order_release);
}

inline bool has_arrived(const TeamSync& member, std::uint64_t k) {
  // Acquire: what the member stored before it arrived is visible to whoever pulls.
  return member.arrival.word[k & 1].load(std::memory_order_acquire) >> 2 == k;
}

inline bool voted(const TeamSync& member, std::uint64_t k, Vote vote) {
  return member.arrival.word[k & 1].load(std::memory_order_acquire) == (k << 2 | static_cast<std::uint64_t>(vote));
}

/// The first member that has not voted so, or nothing.
inline std::optional<int> first_against(const SyncView& view, std::uint64_t k, Vote vote) {
  for (int i = 0; i < view.size(); ++i) {
    if (!voted(view.member(i), k, vote)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace shmem
