// SPDX-License-Identifier: Apache-2.0
// main() of the tests that boot a guest.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"
#include "tests/vm/kernels.hpp"

namespace {

/// Why no guest can run here; empty if one can.
std::string prepare() {
  const test_support::Seconds limit(test_support::repeats(150, 900));
  for (auto command : vm::preparations()) {
    const std::string script = command.front();
    command.front() = GBA_SOURCE_DIR "/scripts/" + script;
    const auto outcome = test_support::run(command, {}, limit);
    if (!outcome.exit.clean()) {
      return outcome.output + script + (outcome.exit.signal != 0 ? " took too long" : " failed");
    }
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const auto reason = GTEST_FLAG_GET(list_tests) ? "" : prepare();
  if (!reason.empty()) {
    std::printf("skipped, QEMU or a kernel for it is not available: %s\n", reason.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
