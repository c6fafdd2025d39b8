// SPDX-License-Identifier: Apache-2.0
// A team's use of the device, from the group that its members agree on to the day they give it back. The team asks only
// this class.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "shmem/barrier/gba_agreement.hpp"

namespace shmem {

/// One member's side. Used by one thread at a time, as its team is. The Job outlives it.
class GbaTeam {
 public:
  /// A software sync of the team, one more barrier.
  using Sync = std::function<Result<void>()>;

  GbaTeam(const Job& job, const SyncView& view, int slot) : job_(job), view_(view), slot_(slot) {}

  /// Collective. Asks for a group of the device, all or nobody. `count` is the number of the team's last barrier.
  /// `member.device` outlives this object or its dissolve().
  Result<void> use(const GbaMember& member, std::uint64_t count, const Sync& software_sync);
  /// Collective. Gives the group back, if there is one; software barriers from then on. REQUIRES: software_sync has
  /// been called once since the last barrier.
  Result<void> dissolve(gba_device* port, const Sync& software_sync);

  /// Barrier `k` is arrive_and_wait's, on all members; otherwise it is software's.
  [[nodiscard]] bool serves(std::uint64_t /*k*/) const { return barrier_ != nullptr; }
  /// REQUIRES: serves(k). Fails only as `watch` fails; loss of the device is no failure.
  std::errc arrive_and_wait(std::uint64_t k, BarrierWatch& watch);
  /// The last barrier of arrive_and_wait was released by the device.
  [[nodiscard]] bool by_device() const { return by_device_; }
  /// The team's barriers go through the device.
  [[nodiscard]] bool active() const { return barrier_ != nullptr; }

  /// Why they do not, or "".
  [[nodiscard]] const std::string& reason() const { return reason_; }
  void explain(std::string reason) { reason_ = std::move(reason); }

 private:
  void give_up();

  const Job& job_;
  const SyncView view_;
  const int slot_;
  std::unique_ptr<GbaBarrier> barrier_;
  std::optional<gba_group_handle> owned_group_;
  std::string reason_;
  std::uint64_t served_ = 0;  // barriers that the device has released
  bool by_device_ = false;
};

}  // namespace shmem
