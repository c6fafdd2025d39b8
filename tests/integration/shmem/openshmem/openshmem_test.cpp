// SPDX-License-Identifier: Apache-2.0
// Every routine of OpenSHMEM 1.6, for every type, on heap and global memory: programs in C11 and C++ that fail with a
// message if a call does not behave as specified.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

using Parameters = std::tuple<const char*, const char*, int>;

class OpenShmemPrograms : public testing::TestWithParam<Parameters> {};

TEST_P(OpenShmemPrograms, DoesWhatTheSpecificationSays) {
  const auto [family, language, pes] = GetParam();
  const std::string program = std::string("openshmem_") + family + "_" + language + "_pes";
  const auto job = run(oshrun(pes, "off", {test_program(program)}), {}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(All, OpenShmemPrograms,
                         testing::Combine(testing::Values("setup", "team", "rma", "atomic", "wait", "collective",
                                                          "threads", "compat"),
                                          testing::Values("c", "cxx"), testing::Values(1, 2, 3, 4, 7)),
                         [](const testing::TestParamInfo<Parameters>& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" +
                                  std::to_string(std::get<2>(test.param));
                         });

TEST(OpenShmem, ThreadsOfTheSamePeUseTheDeviceAtOnce) {
  const auto job = run(oshrun(3, "fake", {test_program("openshmem_threads_c_pes")}), {}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

}  // namespace
