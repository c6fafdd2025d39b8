// SPDX-License-Identifier: Apache-2.0
// How a team that has lost its group of the device gets another one, without being told to.
#pragma once

#include <algorithm>
#include <optional>

#include "shmem/barrier/gba_agreement.hpp"

namespace shmem {

/// When to try again something that fails: at once the first time, then after `first`, twice that, ... 40 times that.
class Pace {
 public:
  explicit Pace(std::chrono::milliseconds first) : first_(first), wait_(first) {}

  [[nodiscard]] bool due() const { return Clock::now() >= next_; }
  void failed() {
    next_ = Clock::now() + wait_;
    wait_ = std::min(2 * wait_, 40 * first_);
  }
  void succeeded() { wait_ = first_; }

 private:
  std::chrono::milliseconds first_, wait_;
  Clock::time_point next_{};
};

/// One member's side of uapi rules 29 to 31: barriers are software's, and every kPeriod-th is a check round, in which
/// members also say how they stand to the device. Used by one thread.
class GbaRecovery {
 public:
  static constexpr std::uint64_t kPeriod = 64;  // even: two words a member are enough
  static_assert(kPeriod % 2 == 0);

  /// REQUIRES: member.port, on all members that want the device at all.
  GbaRecovery(const SyncView& view, const GbaMember& member) : view_(view), member_(member), pace_(member.retry) {}

  static bool is_check(std::uint64_t k) { return k % kPeriod == 0; }
  /// Before the software barrier k. REQUIRES: is_check(k).
  void vote(std::uint64_t k);
  /// After it. A group, if there is one: the device serves the next barrier. The same on all members.
  std::optional<GbaGroup> conclude(std::uint64_t k);

  /// The group that conclude() gave is lost again, after so many barriers.
  void lost_again(std::uint64_t served);

 private:
  Vote offer(std::uint64_t sequence);
  Vote join();
  [[nodiscard]] bool is_offered(std::uint64_t k) const { return offered_ && *offered_ == k; }

  const SyncView view_;
  const GbaMember member_;
  Pace pace_;
  bool asked_ = false;                    // the port to look after its device
  std::optional<std::uint64_t> offered_;  // the check round at which members say whether they have joined
  GbaGroup group_;
};

}  // namespace shmem
