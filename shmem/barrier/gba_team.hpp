// SPDX-License-Identifier: Apache-2.0
// A team's use of the device, from the group that its members agree on to the day they give it back, through loss and
// recovery. The team asks only this class.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "shmem/barrier/algorithm_table.hpp"
#include "shmem/barrier/gba.hpp"
#include "shmem/barrier/gba_recovery.hpp"
#include "shmem/barrier/port_sharing.hpp"

namespace shmem {

/// Members that share a port come together at its opener, the openers meet through the device or in software, and let
/// the others go, who need not know which way it was.
///
/// One member's side. Used by one thread at a time, as its team is. The Job outlives it.
class GbaTeam {
 public:
  /// A software sync of the team, one more barrier.
  using Sync = std::function<Result<void>()>;

  GbaTeam(const Job& job, const TeamMap& map, const SyncView& view, int slot)
      : job_(job), map_(map), view_(view), slot_(slot) {}

  /// Collective. Asks for a group of the device, all or nobody. `ports`: of the node, 0: none; the same on all members.
  /// `count` is the number of the team's last barrier. `member.port` outlives this object.
  Result<void> use(const GbaMember& member, int ports, std::uint64_t count, const Sync& software_sync);
  /// Collective. Gives the group back, if there is one; software barriers from then on. REQUIRES: software_sync has
  /// been called once since the last barrier.
  Result<void> dissolve(const Sync& software_sync);

  /// Barrier `k` is arrive_and_wait's, on all members; otherwise it is software's.
  [[nodiscard]] bool serves(std::uint64_t k) const {
    return active_ || shares_ || (recovery_ && GbaRecovery::is_check(k));
  }
  /// REQUIRES: serves(k). `software` is how the team's other barriers are done. Fails only as `watch` fails; loss of
  /// the device is no failure.
  std::errc arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch);
  /// In two phases: arrive, then test until it says that the barrier is over, or finish. Members that share a port then
  /// meet in memory, because an opener would have to be in a call to let the others go; the openers ring the device all
  /// the same, which counts the team's barriers.
  void arrive(std::uint64_t k);
  bool test(std::uint64_t k);
  std::errc finish(std::uint64_t k, BarrierWatch& watch);
  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// The team's barriers go through the device.
  [[nodiscard]] bool active() const { return active_; }

  /// Why they do not, or "".
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  [[nodiscard]] bool is_opener() const { return view_.me() < openers_.size(); }
  /// Does barrier k end, for this member, by the words of SplitSync, after arrive()?
  [[nodiscard]] bool meets_in_memory() const { return !barrier_ || shares_; }
  std::errc meet_openers(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch);
  std::errc meet_in_software(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch);
  void report_to_sharers() const;
  void follow_opener();
  void end_barrier(std::uint64_t k);
  void end_check_round(std::uint64_t k);
  void begin(GbaGroup group);
  void lose();
  void tell(const std::string& text) const;

  const Job& job_;
  const TeamMap map_;
  const SyncView view_;
  const int slot_;
  SyncView openers_ = view_;
  Group behind_port_;    // the members that share this one's port
  bool shares_ = false;  // any members share one
  std::optional<GbaMember> member_;
  std::optional<GbaRecovery> recovery_;  // where the device may be used at all
  std::optional<OwnedGroup> owned_;      // of barrier_; goes after it
  std::optional<GbaBarrier> barrier_;
  std::string reason_;
  bool active_ = false;
  std::uint64_t served_ = 0;  // by the group in use
  bool by_device_ = false;
};

}  // namespace shmem
