// SPDX-License-Identifier: Apache-2.0
// The process that ends the PEs when oshrun cannot.
#pragma once

#include <sys/types.h>

#include <utility>

#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Leads the process group of the PEs, and does nothing but wait for the end of this process, however it comes; then it
/// kills the group. The kernel kills the PEs themselves by then (PR_SET_PDEATHSIG); the guard is for what they have
/// started, e.g. the program that a shell script runs. As long as it has not been waited for nobody else can get its
/// number, so that a signal to group() goes to nobody else's processes. Ends with the object.
class Guard {
 public:
  static Result<Guard> start();
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  Guard(Guard&& other) noexcept
      : pid_(other.pid_), alive_(std::exchange(other.alive_, false)), lifeline_(std::move(other.lifeline_)) {}
  Guard& operator=(Guard&& other) = delete;
  ~Guard();

  /// The PEs' process group, which is also the guard's own process. It does not die of signals but SIGKILL.
  [[nodiscard]] pid_t group() const { return pid_; }
  /// Sends a signal to the whole group; to nobody once the guard is gone.
  void signal_group(int signal) const;
  /// Somebody else has waited for the guard.
  void note_end() { alive_ = false; }

 private:
  Guard(pid_t pid, UniqueFd lifeline) : pid_(pid), lifeline_(std::move(lifeline)) {}

  pid_t pid_;
  bool alive_ = true;
  UniqueFd lifeline_;
};

}  // namespace shmem::launcher
