// SPDX-License-Identifier: Apache-2.0
// Signals to eventfds that clients have open too.
#pragma once

#include <linux/aio_abi.h>

#include "base/fd.hpp"

namespace fake_device {

/// Used by one thread. A client can make its eventfd blocking and fill it at any moment, also between a poll and the
/// write; the write then blocks, and all clients with it. The kernel's own signal never blocks, so an asynchronous read
/// of nothing is submitted, whose completion signals the eventfd. If the kernel has no asynchronous I/O for this
/// process, the signal is a poll and a write.
class EventSignaller {
 public:
  EventSignaller();
  EventSignaller(const EventSignaller&) = delete;
  EventSignaller& operator=(const EventSignaller&) = delete;
  ~EventSignaller();

  /// REQUIRES: an eventfd. One that is full stays full.
  void signal(int eventfd);
  /// False: only non-blocking eventfds may be signalled, and a client can still make the device wait.
  [[nodiscard]] bool never_waits() const { return context_ != 0; }

 private:
  bool submit(int eventfd);
  void forget_completions();
  [[nodiscard]] bool works();

  base::UniqueFd nothing_;
  aio_context_t context_ = 0;
  unsigned outstanding_ = 0;  // completions not yet taken out of the ring
};

}  // namespace fake_device
