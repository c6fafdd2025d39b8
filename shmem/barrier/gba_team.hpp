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

namespace shmem {

/// One member's side. Used by one thread at a time, as its team is. The Job outlives it.
class GbaTeam {
 public:
  /// A software sync of the team, one more barrier.
  using Sync = std::function<Result<void>()>;

  GbaTeam(const Job& job, const SyncView& view, int slot) : job_(job), view_(view), slot_(slot) {}

  /// Collective. Asks for a group of the device, all or nobody. `count` is the number of the team's last barrier.
  /// `member.port` outlives this object.
  Result<void> use(const GbaMember& member, std::uint64_t count, const Sync& software_sync);
  /// Collective. Gives the group back, if there is one; software barriers from then on. REQUIRES: software_sync has
  /// been called once since the last barrier.
  Result<void> dissolve(const Sync& software_sync);

  /// Barrier `k` is arrive_and_wait's, on all members; otherwise it is software's.
  [[nodiscard]] bool serves(std::uint64_t k) const { return barrier_ || (recovery_ && GbaRecovery::is_check(k)); }
  /// REQUIRES: serves(k). `software` is how the team's other barriers are done. Fails only as `watch` fails; loss of
  /// the device is no failure.
  std::errc arrive_and_wait(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch);
  /// In two phases: arrive, then test until it says that the barrier is over, or finish.
  void arrive(std::uint64_t k);
  bool test(std::uint64_t k);
  std::errc finish(std::uint64_t k, BarrierWatch& watch);
  /// The last barrier was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// The team's barriers go through the device.
  [[nodiscard]] bool active() const { return barrier_.has_value(); }

  /// Why they do not, or "".
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  std::errc check_round(std::uint64_t k, const BarrierChoice& software, BarrierWatch& watch);
  void end_barrier(std::uint64_t k);
  void end_check_round(std::uint64_t k);
  void begin(GbaGroup group);
  void lose();
  void tell(const std::string& text) const;

  const Job& job_;
  const SyncView view_;
  const int slot_;
  std::optional<GbaMember> member_;
  std::optional<GbaRecovery> recovery_;  // where the device may be used at all
  std::optional<OwnedGroup> owned_;      // of barrier_; goes after it
  std::optional<GbaBarrier> barrier_;
  std::string reason_;
  std::uint64_t served_ = 0;  // by the group in use
  bool by_device_ = false;
};

}  // namespace shmem
