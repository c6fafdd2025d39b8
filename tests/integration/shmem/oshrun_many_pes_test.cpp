// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr Seconds kLimit{100};

class ManyPes : public ::testing::TestWithParam<const char*> {};

TEST_P(ManyPes, Synchronise) {
  const auto outcome =
      run({program("oshrun"), "-n", GetParam(), test_program("oshrun_pe"), "barriers", "20"}, {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, "all done\n");
}

TEST_P(ManyPes, EndWhenOneDies) {
  const std::string marker = std::string("many-") + GetParam();
  const auto outcome =
      run({program("oshrun"), "-n", GetParam(), test_program("oshrun_pe"), "die", "40", "9", marker}, {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 137);
  EXPECT_THAT(outcome.output, HasSubstr("oshrun: PE 40 (pid "));
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Oshrun, ManyPes, ::testing::Values("64", "708"));

}  // namespace
