// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "fake_device/shared_memory.hpp"
#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  fake_device::install_sigbus_guard();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::run_session(std::as_bytes(std::span(data, size)));
  return 0;
}
