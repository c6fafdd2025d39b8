// SPDX-License-Identifier: Apache-2.0
// Whether a new team uses the device is one decision of all its members, never of one alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "shmem/barrier/gba.hpp"

namespace shmem {

/// What came of it, the same on all members but for the text.
struct GbaAgreement {
  std::unique_ptr<GbaBarrier> barrier;    // nullptr: software barriers
  std::optional<gba_group_handle> owned;  // member 0 only: to be freed when all members have left
  std::string reason;                     // why there is no barrier through the device
};

/// What a member brings to the agreement.
struct GbaMember {
  gba_device* device;       // nullptr: this PE has no port
  std::string unavailable;  // then: why
  bool wanted;              // the environment and the size of the team allow it
  WaitPolicy policy;
};

/// Collective over the team. `count` is the number of its last barrier. `sync` is a software sync of the team, one more
/// barrier; its errors end the agreement.
Result<GbaAgreement> agree_on_gba(const SyncView& view, const GbaMember& member, std::uint64_t count,
                                  const std::function<Result<void>()>& sync);

}  // namespace shmem
