// SPDX-License-Identifier: Apache-2.0
// A team: which PEs, where they synchronise, and how.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "shmem/barrier/gba_agreement.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// How a team's barriers were done, since it was made.
struct BarrierStats {
  std::uint64_t by_device = 0;
  std::uint64_t by_software = 0;
};

/// One member's side of a team. Used by one thread at a time. The Job outlives it.
///
/// Life: made (software barriers work from then on), optionally given a group of the device, used, dissolved,
/// destroyed.
class Team {
 public:
  /// `slot` is agreed among the members; `count` is what the slot's words stand at on all of them.
  Team(const Job& job, const TeamMap& map, int slot, std::uint64_t count);

  [[nodiscard]] const TeamMap& map() const { return map_; }
  [[nodiscard]] int slot() const { return slot_; }
  [[nodiscard]] int me() const { return view_.me(); }
  [[nodiscard]] int size() const { return map_.size; }
  [[nodiscard]] const SyncView& view() const { return view_; }
  [[nodiscard]] const BarrierStats& stats() const { return stats_; }
  [[nodiscard]] const char* algorithm() const { return gba_ ? "gba" : "npu_v3"; }
  /// Why the team does not use the device, or "".
  [[nodiscard]] const std::string& gba_reason() const { return reason_; }

  /// Collective. Returns once all members have called it. An Error says for whom it waited; the team is of no use then.
  Result<void> sync();

  /// Collective. Asks for a group of the device for this team, all or nobody; without one the team stays on software.
  /// `port` outlives the team or its dissolve().
  Result<void> use_gba(const GbaMember& member);
  /// Collective. Gives the group back, if there is one; software barriers from then on.
  Result<void> dissolve(gba_device* port);
  /// Collective. As dissolve, and says why in gba_reason().
  Result<void> use_software(gba_device* port, std::string reason);

  /// The next barrier count, for kernels that synchronise the team on their cores.
  std::uint64_t next_count() { return ++count_; }

 private:
  Result<void> software_sync();
  Result<void> gba_sync();
  void after_gba_sync();

  const Job& job_;
  TeamMap map_;
  int slot_;
  SyncView view_;
  std::uint64_t count_;
  std::unique_ptr<GbaBarrier> gba_;
  std::optional<gba_group_handle> owned_group_;
  std::string reason_;
  BarrierStats stats_;
};

}  // namespace shmem
