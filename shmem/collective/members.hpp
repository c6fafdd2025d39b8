// SPDX-License-Identifier: Apache-2.0
// Who takes part in a collective call, and how they meet.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "shmem/team/sync_view.hpp"

namespace shmem {

/// The PEs of a team or of an active set, seen from one of them, for the time of one call.
///
/// A collective meets at its beginning, when everybody's buffers may be read; then each member fetches what it needs
/// from the others' memory; then it meets again, when nobody reads them any more. Nothing is sent.
struct Members {
  const Job& job;
  TeamMap map;
  int me;
  /// Everybody has come. What was stored before is visible.
  std::function<Result<void>()> meet;
  /// Tells the others a number that each has of its own; they read it after the next meeting and before the one after
  /// that.
  std::function<void(std::uint64_t)> tell;
  std::function<std::uint64_t(int member)> told;
  // For SHMEM_DEBUG: which team it is, or by which words the PEs of an active set meet.
  int slot = -1;
  const long* psync = nullptr;

  [[nodiscard]] int size() const { return map.size; }
  /// `mine`, which has been found to be symmetric, as a member has it.
  [[nodiscard]] std::byte* at(const void* mine, int member) const { return job.translate(mine, map.pe(member)); }
};

}  // namespace shmem
