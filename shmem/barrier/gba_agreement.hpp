// SPDX-License-Identifier: Apache-2.0
// Whether a team uses the device is one decision of all its members, never of one alone.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "shmem/barrier/gba_port.hpp"
#include "shmem/barrier/gba_vote.hpp"

namespace shmem {

/// What a member brings to the agreement.
struct GbaMember {
  GbaPort* port;            // nullptr: this PE has none and will have none
  std::string unavailable;  // then: why
  bool wanted;              // the environment and the size of the team allow it
  WaitPolicy policy;
  std::chrono::milliseconds retry{100};  // after a group could not be had again, at first
  bool needed = false;                   // even by a team that is behind one port
};

/// A group of the device that this PE has joined.
struct GbaGroup {
  std::optional<OwnedGroup> owned;  // member 0 only; goes back after this member has left
  GbaMembership membership;
};

/// What came of it, the same on all members but for the text; of the group, a member without a port has nothing.
struct GbaAgreement {
  std::optional<GbaGroup> group;
  bool later = false;  // no group now, but there may be one: GbaRecovery
  std::string reason;  // why there is none
};

/// Collective over the team, of which the first `openers` members have ports; it is they who agree. `count` is the
/// number of its last barrier. `sync` is a software sync of the team, one more barrier; its errors end the agreement.
Result<GbaAgreement> agree_on_gba(const SyncView& view, int openers, const GbaMember& member, std::uint64_t count,
                                  const std::function<Result<void>()>& sync);

/// Member 0 of the openers: takes a group whose first barrier is `sequence` + 1, and writes it down for the others, to
/// whom it must be told.
Result<OwnedGroup> offer_group(const SyncView& view, const GbaMember& member, std::uint64_t sequence);
/// Joins what member 0 has written down.
Result<GbaMembership> join_offer(const SyncView& view, const GbaMember& member);

}  // namespace shmem
