// SPDX-License-Identifier: Apache-2.0
// libFuzzer's interface to one target. The macro RUN names its function.
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::RUN(std::as_bytes(std::span(data, size)));
  return 0;
}
