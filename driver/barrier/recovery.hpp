// SPDX-License-Identifier: Apache-2.0
// How members that have lost their group of the device get another one, without being told to.
#pragma once

#include <chrono>
#include <optional>

#include "driver/barrier/pace.hpp"
#include "driver/barrier/port.hpp"
#include "driver/barrier/words.hpp"

namespace gba::barrier {

/// One member's side of uapi rules 29 to 31: barriers are software's, and every kPeriod-th is a check round, in which
/// members also say how they stand to the device. Used by one thread.
class Recovery {
 public:
  static constexpr std::uint64_t kPeriod = GBA_BARRIER_PERIOD;
  static_assert(kPeriod % 2 == 0, "two words a member are enough (uapi rule 29)");

  /// `record` is in memory that all members read; member 0 alone writes it.
  Recovery(const Words& words, const MemberPlace& place, std::uint32_t member, gba_group_handle* record,
           std::chrono::nanoseconds retry)
      : words_(words), place_(place), member_(member), record_(record), pace_(retry, kLongestPauses * retry) {}

  static bool is_check(std::uint64_t k) { return k % kPeriod == 0; }
  /// What this member says in check round k, which it enters now.
  CheckVote vote(std::uint64_t k);
  /// After check round k, before k + 1. A group, if the device serves the next barrier: the same on all members.
  std::optional<HeldGroup> conclude(std::uint64_t k);
  /// The group that was used is lost, after this many barriers.
  void lost(std::uint64_t served);

 private:
  // All members take part in a try. So the pauses grow, but not beyond what the return to a device may take.
  static constexpr int kLongestPauses = 5;

  CheckVote offer(std::uint64_t sequence);
  CheckVote join();
  [[nodiscard]] bool all_ready(std::uint64_t k) const;
  [[nodiscard]] bool is_offered(std::uint64_t k) const { return offered_ && *offered_ == k; }

  const Words words_;
  const MemberPlace place_;
  const std::uint32_t member_;
  gba_group_handle* const record_;
  Pace pace_;
  std::optional<std::uint64_t> offered_;  // the check round at which members say whether they have joined
  HeldGroup group_;
};

}  // namespace gba::barrier
