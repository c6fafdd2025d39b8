// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.hpp"

namespace {

using test_support::Seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Seconds kLimit{100};

class ManyPes : public ::testing::TestWithParam<const char*> {};

TEST_P(ManyPes, Synchronise) {
  const auto outcome = test_support::run(
      {test_support::program("oshrun"), "-n", GetParam(), test_support::test_program("oshrun_pe"), "barriers", "20"},
      {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, "all done\n");
}

TEST_P(ManyPes, EndWhenOneDies) {
  const std::string marker = std::string("many-") + GetParam();
  const auto outcome = test_support::run({test_support::program("oshrun"), "-n", GetParam(),
                                          test_support::test_program("oshrun_pe"), "die", "40", "9", marker},
                                         {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 137);
  EXPECT_THAT(outcome.output, HasSubstr("oshrun: PE 40 (pid "));
  EXPECT_THAT(test_support::processes_matching(marker), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Oshrun, ManyPes, ::testing::Values("64", "708"));

}  // namespace
