// SPDX-License-Identifier: Apache-2.0
// The signals that oshrun waits for, as a descriptor to poll.
#pragma once

#include <signal.h>

#include <optional>

#include "base/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Blocks SIGCHLD, the signals that end a program, SIGTSTP, SIGUSR1 and SIGUSR2 while it lives, so that they are read
/// here. Signals that were ignored at start (nohup) stay ignored. SIGPIPE is blocked too: writing without a reader is
/// an ordinary error.
class Signals {
 public:
  static Result<Signals> block();

  /// Readable when a signal is pending.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next pending signal, or 0.
  [[nodiscard]] int next() const;
  /// The signals blocked before: the mask for programs that oshrun starts.
  [[nodiscard]] const sigset_t& mask_before() const { return before_; }

 private:
  Signals(base::UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  base::UniqueFd fd_;
  sigset_t before_;
};

}  // namespace shmem::launcher
