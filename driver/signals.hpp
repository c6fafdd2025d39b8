// SPDX-License-Identifier: Apache-2.0
// The signal mask of the program's threads that touch the memory of a device; base/signals_blocked.hpp has that of the
// library's. If the device is gone, an access raises SIGBUS, which process_hooks.hpp handles; the kernel ends a process
// that blocks the signal in the thread that accesses.
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

}  // namespace gba
