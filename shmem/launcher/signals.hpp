// SPDX-License-Identifier: Apache-2.0
// The signals that oshrun waits for, as something to poll.
#pragma once

#include <signal.h>

#include <optional>

#include "shmem/memory/fd.hpp"
#include "shmem/result.hpp"

namespace shmem::launcher {

/// Blocks SIGCHLD, those that end a program, and SIGTSTP, as long as it lives, so that they are read here. Those that
/// were ignored when we started (nohup) stay ignored. SIGPIPE is blocked too: writing to nobody is an error like
/// others.
class Signals {
 public:
  static Result<Signals> block();

  /// Readable when a signal is there.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next signal that is there, or 0.
  [[nodiscard]] int next() const;
  /// What was blocked before us: what a program that we start should have.
  [[nodiscard]] const sigset_t& mask_before() const { return before_; }

 private:
  Signals(UniqueFd fd, const sigset_t& before) : fd_(std::move(fd)), before_(before) {}

  UniqueFd fd_;
  sigset_t before_;
};

}  // namespace shmem::launcher
