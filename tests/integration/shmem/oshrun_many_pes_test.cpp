// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/shmem/oshrun_runs.hpp"

namespace {

using namespace oshrun_test;
using oshrun_test::oshrun;
using namespace test_support;
using namespace testing;

class ManyPes : public ::testing::TestWithParam<const char*> {};

TEST_P(ManyPes, Synchronise) {
  const auto outcome =
      run({program("oshrun"), "-n", GetParam(), test_program("oshrun_pe"), "barriers", "20"}, {}, Seconds{600});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, "all done\n");
}

TEST_P(ManyPes, EndWhenOneDies) {
  const std::string marker = unique(std::string("many-") + GetParam());
  const auto outcome =
      run({program("oshrun"), "-n", GetParam(), test_program("oshrun_pe"), "die", "40", "9", marker}, {}, Seconds{600});
  EXPECT_EQ(outcome.exit.code, 137);
  EXPECT_THAT(outcome.output, HasSubstr("oshrun: PE 40 (pid "));
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Oshrun, ManyPes, ::testing::Values("64", "708"));

}  // namespace
