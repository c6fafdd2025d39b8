// SPDX-License-Identifier: Apache-2.0
// The example that uses libgba alone: its device is killed under load and started again, several times. Every barrier
// completes, and the device is used again.
#include <signal.h>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr const char* kByDevice = ": the device does the next ones";
constexpr const char* kInSoftware = ": software does the next ones";

constexpr Seconds kLimit{300};

class LosslessBarrier : public testing::Test {
 protected:
  /// Waits until the example has printed `text` `times` times.
  void await(const std::string& text, int times) {
    const auto deadline = std::chrono::steady_clock::now() + kLimit;
    while (count(text) < times) {
      ASSERT_TRUE(std::chrono::steady_clock::now() < deadline) << job_.output();
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
  }
  void end() {
    job_.signal(SIGINT);
    const auto exit = job_.wait(kLimit);
    ASSERT_TRUE(exit) << "still running:\n" << job_.output();
    EXPECT_TRUE(exit->clean()) << job_.output();
    EXPECT_THAT(job_.output(), HasSubstr("lossless_barrier: correct"));
  }
  [[nodiscard]] int count(const std::string& text) const {
    const std::string output = job_.output();
    int found = 0;
    for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) {
      ++found;
    }
    return found;
  }

  FakeDevice device_;
  Process job_{{GBA_LOSSLESS_BARRIER, device_.path(), "3", "0"}};
};

TEST_F(LosslessBarrier, SurvivesADeviceThatIsKilledAndUsesItsSuccessor) {
  await(kByDevice, 1);
  for (int loss = 1; loss <= repeats(5, 100) && !HasFatalFailure(); ++loss) {
    device_.kill();
    await(kInSoftware, loss);
    device_.start();
    await(kByDevice, 1 + loss);
  }
  end();
}

TEST_F(LosslessBarrier, GoesOnInSoftwareWhenTheDeviceStaysAway) {
  await(kByDevice, 1);
  device_.process().signal(SIGKILL);
  await(kInSoftware, 1);
  end();
}

}  // namespace
