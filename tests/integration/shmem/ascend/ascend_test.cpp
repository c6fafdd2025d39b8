// SPDX-License-Identifier: Apache-2.0
// Programs written for Ascend SHMEM, in C11 and C++, that end with a message where something is not as that library
// says.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::TempDir;
using test_support::test_program;

using Parameters = std::tuple<const char*, int>;

class Ascend : public testing::TestWithParam<Parameters> {};

TEST_P(Ascend, CallsDoWhatThatLibrarySays) {
  const auto [program, pes] = GetParam();
  const auto job = run(oshrun(pes, "off", {test_program(std::string("ascend_") + program + "_pes")}),
                       {"SHMEM_CYCLE_PROF_PE=" + std::to_string(pes - 1)}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(AscendPrograms, EndWithAMessageThatNamesTheCall) {
  const std::pair<const char*, const char*> mistakes[] = {
      {"pe", "aclshmem_int32_p: there is no PE 2"},
      {"address", "aclshmem_int32_put: 4 bytes at the given address are not"},
      {"stride", "aclshmem_int32_iget: strides 0 and 1"},
      {"operation", "aclshmem_put32_signal: 2 is neither"},
      {"alignment", "aclshmemx_putmem_signal: the given address is not aligned"},
      {"comparison", "aclshmem_signal_wait_until: 6 is no comparison"},
      {"wait", "aclshmem_int32_wait_until: 4 bytes at the given address are not"},
  };
  for (const auto& [name, message] : mistakes) {
    const auto job = run(oshrun(2, "off", {test_program("ascend_rma_c_pes"), name}));
    EXPECT_NE(job.exit.code, 0) << name;
    EXPECT_EQ(job.exit.signal, 0) << name;
    EXPECT_NE(job.output.find(message), std::string::npos) << name << job.output;
  }
}

TEST(AscendPrograms, RunAsTheyAreWrittenForThatLibrary) {
  for (const int pes : {1, 2, 3, 4}) {
    TempDir dir;
    const auto job = run(oshrun(pes, "off", {test_program("ascend_allgather_pes"), dir.file("uid")}),
                         {"SHMEM_UID_SESSION_ID=127.0.0.1:0"}, Seconds{100});
    EXPECT_TRUE(job.exit.clean()) << pes << job.output;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, Ascend,
                         testing::Combine(testing::Values("rma_c", "rma_cxx", "sync_c", "sync_cxx", "device", "kernel"),
                                          testing::Values(1, 2, 3, 4)),
                         [](const testing::TestParamInfo<Parameters>& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::to_string(std::get<1>(test.param));
                         });

}  // namespace
