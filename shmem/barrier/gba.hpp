// SPDX-License-Identifier: Apache-2.0
// Barriers through the device, without losing one when the device, or one member's way to it, is lost.
#pragma once

#include <cstdint>

#include "shmem/barrier/gba_port.hpp"
#include "shmem/barrier/gba_vote.hpp"
#include "shmem/barrier/watch.hpp"

namespace shmem {

/// uapi/README.md, "Losing the device". One member's side; used by one thread.
///
/// Each member publishes its arrival before it rings. As long as nobody has trouble the words are not read. A member
/// that has trouble finishes barrier k by reading everybody's words (it *pulls* k), says so in its own, and says OFF
/// from k + 1 on; who sees that pulls too. A barrier with an OFF in it is never released by the device, so all members
/// pull it, all see the OFF, and all know that the next barrier, and all after it, are software's.
class GbaBarrier {
 public:
  /// REQUIRES: no member's word holds the number of a barrier to come, and a sync of the team has passed since.
  GbaBarrier(const SyncView& view, GbaMembership group, const WaitPolicy& policy)
      : view_(view), group_(std::move(group)), policy_(policy) {}

  /// Barrier `k`, one more than the last time. Fails only as `watch` fails; loss of the device is no failure.
  std::errc arrive_and_wait(std::uint64_t k, BarrierWatch& watch);
  /// The same in parts: arrive, then test until it says that the barrier is over, or finish.
  void arrive(std::uint64_t k);
  bool test();
  std::errc finish(BarrierWatch& watch);

  /// True once all members know that the next barrier is software's; then arrive_and_wait must not be called again.
  [[nodiscard]] bool over() const { return over_; }
  /// The last barrier was released by the device, not pulled.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// Why this member stopped using the device, or "".
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 private:
  /// errc{}: released. not_connected: pull. Otherwise the watch's error.
  std::errc await_release(BarrierWatch& watch);
  std::errc pull(BarrierWatch& watch);
  void begin_to_pull();
  /// For test(): as await_release, one look.
  int look();
  [[nodiscard]] bool all_arrived() const;
  [[nodiscard]] bool anybody_says(Vote vote) const;
  [[nodiscard]] bool somebody_pulls() const;

  SyncView view_;
  GbaMembership group_;
  std::uint64_t sequence_ = 0;  // of the barrier entered last
  WaitPolicy policy_;
  // Of test(): when it takes a closer look, which costs system calls.
  Clock::time_point next_look_{};
  std::chrono::nanoseconds look_again_{};
  bool off_ = false;
  bool over_ = false;
  bool by_device_ = false;
  std::string trouble_;
};

}  // namespace shmem
