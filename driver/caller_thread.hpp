// SPDX-License-Identifier: Apache-2.0
// The signal mask of the program's threads that touch the memory of a device; base/signals_blocked.hpp has that of the
// library's. If the device is gone, an access raises SIGBUS, which process_hooks.hpp handles; the kernel ends a process
// that blocks the signal in the thread that accesses.
#pragma once

namespace gba {

/// The calling thread has been prepared. Once is enough: the program must not block the signal again.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local bool caller_is_prepared;

/// Lets SIGBUS reach the calling thread, which a program that waits for signals in one thread has blocked in all.
void prepare_caller();

inline void ensure_prepared() {
  if (!caller_is_prepared) [[unlikely]] {
    prepare_caller();
  }
}

}  // namespace gba
