// SPDX-License-Identifier: Apache-2.0
// Programs made of fragments of documents about Ascend SHMEM's device code.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

TEST(AscendFragments, AreBarriersOnTheSignalsAndByTheAlgorithmsOfTheirNames) {
  for (const int pes : {1, 2, 3, 8}) {
    const auto job = run(oshrun(pes, "off", {test_program("ascend_fragments_pes"), "barriers"}), {}, Seconds{100});
    EXPECT_TRUE(job.exit.clean()) << pes << job.output;
  }
}

TEST(AscendFragments, ChooseTheirBarriersAlsoIfTheTeamHasTheDevice) {
  const auto job =
      run(oshrun(4, "fake", {test_program("ascend_fragments_pes"), "barriers"}), {"SHMEM_GBA=require"}, Seconds{100});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(AscendFragments, RunOnPesOfAnyNodes) {
  const auto job = run(oshrun(3, "off", {test_program("ascend_fragments_pes"), "nodes"}), {}, Seconds{100});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(AscendFragments, SynchroniseCoresByFlagsOfEachMode) {
  const auto job = run(oshrun(2, "off", {test_program("ascend_fragments_pes"), "flags"}), {}, Seconds{100});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  for (const char* message : {"shmemx_core_flag_set: there is no flag 16 with mode 0 (flags 0 to 15, modes 0 to 2)",
                              R"(shmemx_core_barrier_by: "gba" is not an algorithm of barriers)"}) {
    EXPECT_NE(job.output.find(message), std::string::npos) << job.output;
  }
}

TEST(AscendFragments, WaitNoLongerThanTheTimeoutAndSayForWhat) {
  const std::pair<const char*, const char*> waits[] = {
      {"absent",
       "(npu_v3) on the words of the team timed out after 1000 ms (SHMEM_BARRIER_TIMEOUT); it waited for PE 0 "},
      {"unset-flag", "there is flag 0, of which this core has got 0 counts and taken 0"},
      {"unsignalled", "there is 0, which has not reached 1"},
  };
  for (const auto& [what, message] : waits) {
    const auto job =
        run(oshrun(3, "off", {test_program("ascend_fragments_pes"), what}), {"SHMEM_BARRIER_TIMEOUT=1"}, Seconds{60});
    EXPECT_TRUE(job.exit.clean()) << what << job.output;
    EXPECT_NE(job.output.find(message), std::string::npos) << what << job.output;
  }
}

}  // namespace
