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

test_support::Outcome whole_life(int pes, const char* gba) {
  return run(oshrun(pes, gba, {test_program("whole_life_pes"), "10"}), {}, Seconds{280});
}

TEST(ManyPes, LiveAWholeLifeWithTheDevice) {
  const auto job = whole_life(repeats(64, 708), "fake");
  EXPECT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
}
TEST(ManyPes, LiveAWholeLifeInSoftware) {
  const auto job = whole_life(repeats(64, 708), "off");
  EXPECT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
}

// What grows with the number of PEs in each of them grows with its square in all: it shows at 128 already.
TEST(ManyPes, NeedLittleMemoryEach) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have memory of their own";
#endif
  constexpr int kPes = 128;
  constexpr unsigned long long kMost = 512;
  const auto job = whole_life(kPes, "off");
  ASSERT_TRUE(job.exit.clean()) << job.output.substr(0, 4000);
  for (int pe = 0; pe < kPes; ++pe) {
    const std::string of_pe = "PE " + std::to_string(pe) + ": private kB";
    const auto own = sum_of(job.output, of_pe);
    const auto tables = sum_of(job.output, of_pe + " \\d+, page tables kB");
    EXPECT_GT(own, 0U) << job.output.substr(0, 4000);
    EXPECT_GT(tables, 0U);
    EXPECT_LE(own + tables, kMost) << "PE " << pe << ": " << own << " + " << tables;
  }
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
