// SPDX-License-Identifier: Apache-2.0
// The signal masks of threads that touch the memory of a device. If the device is gone, an access raises SIGBUS, which
// process_hooks.hpp handles; the kernel ends a process that blocks the signal in the thread that accesses.
#pragma once

#include <signal.h>

namespace gba {

/// Lets SIGBUS reach the calling thread, which a program that waits for signals in one thread has blocked in all.
inline void unblock_bus_errors() {
  sigset_t bus;
  ::sigemptyset(&bus);
  ::sigaddset(&bus, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
}

/// As long as it lives, a thread that this one starts blocks all signals but SIGBUS: those of the program are for its
/// own threads.
class OnlyBusErrors {
 public:
  OnlyBusErrors() {
    sigset_t others;
    ::sigfillset(&others);
    ::sigdelset(&others, SIGBUS);
    ::pthread_sigmask(SIG_SETMASK, &others, &before_);
  }
  OnlyBusErrors(const OnlyBusErrors&) = delete;
  OnlyBusErrors& operator=(const OnlyBusErrors&) = delete;
  ~OnlyBusErrors() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace gba
