// SPDX-License-Identifier: Apache-2.0
// Interrupts: a 1 added to an eventfd that a client holds too.
#pragma once

#include <linux/aio_abi.h>

#include "fake_device/unique_fd.hpp"

namespace fake_device {

/// Used by one thread. A client can make its eventfd blocking and fill it at any moment, between a look at it and the
/// write too, and then the write waits, and with it everybody. What never waits is the kernel's own signal, so an
/// asynchronous read of nothing is submitted, whose completion gives it. Where the kernel has no asynchronous I/O for
/// this process, it is a look and a write.
class EventSignaller {
 public:
  EventSignaller();
  EventSignaller(const EventSignaller&) = delete;
  EventSignaller& operator=(const EventSignaller&) = delete;
  ~EventSignaller();

  /// REQUIRES: an eventfd. One that is full stays full.
  void signal(int eventfd);
  /// False: only eventfds that are not blocking may be signalled, and a client can still make this one wait.
  [[nodiscard]] bool never_waits() const { return context_ != 0; }

 private:
  [[nodiscard]] bool submit(int eventfd);
  void forget_completions();
  [[nodiscard]] bool works();

  UniqueFd nothing_;
  aio_context_t context_ = 0;
  unsigned outstanding_ = 0;  // completions not yet taken out of the ring
};

}  // namespace fake_device
