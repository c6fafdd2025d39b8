// SPDX-License-Identifier: Apache-2.0
// Barriers of a team's members on one node through the device, and the agreement of all members to use it. The protocol
// is libgba's (gba/barrier.h); here are the words that it needs and the team's syncs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "shmem/barrier/wait_monitor.hpp"
#include "shmem/offload/gba_port.hpp"

namespace shmem {

/// One member's side. Used by one thread.
class DeviceBarrier final : BarrierWaiter {
 public:
  /// A software barrier `k` is a check round: members may agree to use the device again.
  static bool is_check(std::uint64_t k) { return k % GBA_BARRIER_PERIOD == 0; }

  /// REQUIRES: no member's word holds the number of a future barrier. All members of the view have a port.
  DeviceBarrier(const SyncView& view, const GbaMember& member);

  /// Member 0: allocates a group whose first barrier is `sequence` + 1, and stores its handle for the others.
  Result<void> offer(std::uint64_t sequence);
  Result<void> join();
  /// Once every member knows that all have joined.
  void begin(std::uint64_t sequence);
  // Giving the group back: each step after a sync of the team.
  void disable();
  void leave() { gba_barrier_leave(barrier_.get()); }
  void free() { gba_barrier_free(barrier_.get()); }

  /// The next barrier is the device's, for all members.
  [[nodiscard]] bool uses_device() const { return uses_device_; }
  /// True: barrier `k` is the device's. False: it is software's; in a check round this member has voted. REQUIRES: `k`
  /// is one more than the last time.
  bool arrive(std::uint64_t k);
  /// True once the barrier is over. REQUIRES, as finish(): arrive() returned true.
  bool test();
  /// Fails only if `watch` does: losing the device is not a failure.
  std::errc finish(BarrierMonitor& watch);
  /// After a check round.
  void conclude();

  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// Barriers that this group has released, or the last one.
  [[nodiscard]] std::uint64_t served() const { return status().served; }
  /// Why this member stopped using the device, or "".
  [[nodiscard]] std::string trouble() const { return status().trouble; }

 private:
  std::errc check(std::chrono::nanoseconds& longest) override;
  void note(int result);
  void note_use() { uses_device_ = gba_barrier_uses_device(barrier_.get()) != 0; }
  [[nodiscard]] gba_barrier_status status() const;

  BarrierHandle barrier_;
  BarrierMonitor* watch_ = nullptr;  // during finish()
  bool open_ = false;
  bool by_device_ = false;
  bool uses_device_ = false;
};

/// The outcome of an agreement, the same on all members except for the text.
struct GbaAgreement {
  bool used = false;   // `barrier` serves the next one
  bool later = false;  // not used now, but perhaps from a check round on
  std::string reason;  // why not
};

/// Collective over the team. Its first `openers` members have ports, and agree. `count` is the number of the team's
/// last barrier. `sync` is a software sync of the team, one more barrier; its errors end the agreement. Makes `barrier`
/// if this member has a port and the device is or may be used.
Result<GbaAgreement> agree_on_gba(const SyncView& view, int openers, const GbaMember& member, std::uint64_t count,
                                  std::optional<DeviceBarrier>& barrier, const std::function<Result<void>()>& sync);

}  // namespace shmem
