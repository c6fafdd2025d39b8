// SPDX-License-Identifier: Apache-2.0
// A team's use of the device: agreeing on a group, barriers, loss and recovery, giving the group back. The only class
// of this folder that LocalTeam knows.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "shmem/config/barrier_choice.hpp"
#include "shmem/offload/device_barrier.hpp"
#include "shmem/offload/port_sharing.hpp"

namespace shmem {

/// The member that has opened a port is its opener. Members that share a port gather at its opener; the openers have a
/// barrier through the device or in software, and then release the members that gathered. gba/barrier.h shares ports in
/// another way, for members that meet only in its words, as Open MPI's do: each publishes, and the holder rings for
/// all. Here the members have the team's own barrier to gather by, which costs the opener no search.
///
/// One member's side. Used by one thread at a time, as its team is. The Job outlives it.
class GbaTeam {
 public:
  /// A software sync of the team, one more barrier.
  using Sync = std::function<Result<void>()>;

  GbaTeam(const Job& job, const TeamMap& map, const SyncView& view, int slot)
      : job_(job), map_(map), view_(view), slot_(slot) {}

  /// Collective. Asks for a group of the device; all members get it or none. `ports`: of the node, the same on all
  /// members. `count` is the number of the team's last barrier. `member.port` outlives this object.
  Result<void> use(const GbaMember& member, int ports, std::uint64_t count, const Sync& software_sync);
  /// Collective. Gives the group back, if there is one; software barriers from then on. REQUIRES: software_sync has
  /// been called once since the last barrier.
  Result<void> dissolve(const Sync& software_sync);
  /// Not collective: leaves the group, which cannot complete a barrier any more, and frees it if this member owns it.
  void abandon();

  /// Barrier `k` is made by arrive_and_wait() on all members; if not, the team makes it in software.
  [[nodiscard]] bool serves(std::uint64_t k) const {
    return active_ || shares_ || (recovers_ && DeviceBarrier::is_check(k));
  }
  /// REQUIRES: serves(k). `software` is the algorithm of the team's other barriers. Fails only if `watch` does: losing
  /// the device is not a failure.
  std::errc arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierMonitor& watch);
  /// A barrier in two phases: arrive, then finish, or test until it is over. Members that share a port end it by words
  /// in memory, because an opener could release them only from inside a call. The openers still arrive at the device,
  /// which counts the team's barriers.
  void arrive(std::uint64_t k);
  bool test(std::uint64_t k);
  std::errc finish(std::uint64_t k, BarrierMonitor& watch);
  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// The team's barriers go through the device.
  [[nodiscard]] bool active() const { return active_; }

  /// Why not, or "".
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  [[nodiscard]] bool is_opener() const { return view_.me() < openers_.size(); }
  /// After arrive(): the open barrier ends by the words of SplitSync.
  [[nodiscard]] bool ends_in_memory() const { return !on_device_ || shares_; }
  /// After a barrier of the openers: releases the members behind their ports, with the outcome.
  std::errc release_sharers(SoloCore<BarrierMonitor>& core, std::uint64_t k);
  std::errc openers_in_software(std::uint64_t k, const BarrierChoice& software, BarrierMonitor& watch);
  void report_to_sharers() const;
  void follow_opener();
  void end_barrier(std::uint64_t k);
  void end_check_round();
  void begin();
  void lose();
  void log_change(const std::string& text) const;

  const Job& job_;
  const TeamMap map_;
  const SyncView view_;
  const int slot_;
  SyncView openers_ = view_;
  MemberGroup behind_port_;               // the members that share this member's port
  bool shares_ = false;                   // some members share a port
  bool recovers_ = false;                 // the device may be used at all
  std::optional<DeviceBarrier> barrier_;  // of an opener
  bool on_device_ = false;                // the open barrier, or the last one, is barrier_'s
  std::string reason_;
  bool active_ = false;
  bool by_device_ = false;
};

}  // namespace shmem
