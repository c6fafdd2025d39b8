// SPDX-License-Identifier: Apache-2.0
// More PEs than processors, many times over: waits must give the processor away.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::oshrun;
using test_support::repeats;
using test_support::run;
using test_support::Seconds;
using test_support::sum_of;
using test_support::test_program;

void barriers(int pes, const char* gba, int rounds) {
  const auto job = run(oshrun(pes, gba, {test_program("barrier_pes"), std::to_string(rounds)}), {}, Seconds{280});
  ASSERT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
  const bool by_device = std::string(gba) == "fake";
  EXPECT_GE(sum_of(job.output, by_device ? "by device" : "by software"),
            static_cast<unsigned long long>(pes) * static_cast<unsigned long long>(rounds));
}

TEST(ManyPes, SixtyFourDoAThousandBarriersThroughTheDevice) {
  barriers(64, "fake", repeats(1000, 100000));
}
TEST(ManyPes, SixtyFourDoAThousandBarriersInSoftware) {
  barriers(64, "off", repeats(1000, 100000));
}
TEST(ManyPes, AsManyAsTheSwitchHasPorts) {
  barriers(708, "fake", repeats(5, 1000));
}

}  // namespace
