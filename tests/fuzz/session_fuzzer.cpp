// SPDX-License-Identifier: Apache-2.0
// One-time set-up of the session target: clients shrink memory that the device writes, which raises SIGBUS.
#include "fake_device/shared_memory.hpp"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  fake_device::install_sigbus_guard();
  return 0;
}
