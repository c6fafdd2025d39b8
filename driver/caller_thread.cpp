// SPDX-License-Identifier: Apache-2.0
#include "driver/caller_thread.hpp"

#include <signal.h>

namespace gba {

constinit thread_local bool caller_is_prepared = false;

void prepare_caller() {
  sigset_t bus;
  ::sigemptyset(&bus);
  ::sigaddset(&bus, SIGBUS);
  ::pthread_sigmask(SIG_UNBLOCK, &bus, nullptr);
  caller_is_prepared = true;
}

}  // namespace gba
