// SPDX-License-Identifier: Apache-2.0
// What the session target needs once: clients shrink memory that the device writes.
#include "fake_device/shared_memory.hpp"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  fake_device::install_sigbus_guard();
  return 0;
}
