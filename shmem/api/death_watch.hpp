// SPDX-License-Identifier: Apache-2.0
// Waits for words that other PEs change, in a job that goes on when a PE dies (shmemx_set_survive).
#pragma once

#include <functional>
#include <string>

#include "shmem/api/entry.hpp"

namespace shmem::api {

/// Finds out whether such a wait can still be relied on: it is for a word that any member of what is left of the job
/// may change, so the death of any of them ends it, and so does a member that has begun to shrink. Used by one thread.
class DeathWatch {
 public:
  /// Whether the wait needs this PE, which has died. Empty: it may need any.
  using Needs = std::function<bool(int pe)>;

  explicit DeathWatch(Needs needs = {}) : needs_(std::move(needs)) {}
  /// Why not; or "". Some system calls for each PE.
  [[nodiscard]] std::string trouble(Runtime& runtime);

 private:
  [[nodiscard]] static bool has_died(const Runtime& runtime, const Team& home, int pe, bool closely);

  Needs needs_;
  int next_ = 0;  // the member to check closely next
};

}  // namespace shmem::api
