// SPDX-License-Identifier: Apache-2.0
// Signals are for the threads of the application; a thread inherits the signal mask of the one that starts it.
#pragma once

#include <signal.h>

namespace base {

/// While it lives, the calling thread receives no signals, nor do threads that it starts, also in other libraries. But
/// SIGBUS: an access to the memory of a GBA that has been removed raises it, and ends the process if it is blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigdelset(&all, SIGBUS);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    ::sigdelset(&all, SIGSEGV);  // the sanitizer's handler says where
#endif
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() {
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
};

}  // namespace base
