// SPDX-License-Identifier: Apache-2.0
// Programs made of fragments of documents about Ascend SHMEM's device code.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

TEST(AscendFragments, AreBarriersOnTheSignalsAndByTheAlgorithmsOfTheirNames) {
  for (const int pes : {1, 2, 3, 8}) {
    run_clean(pes, "off", {"ascend_cxx_pes", "fragments", "barriers"});
  }
}

TEST(AscendFragments, ChooseTheirBarriersAlsoIfTheTeamHasTheDevice) {
  run_clean(4, "fake", {"ascend_cxx_pes", "fragments", "barriers"}, {"SHMEM_GBA=require"});
}

TEST(AscendFragments, RunOnPesOfAnyNodes) {
  run_clean(3, "off", {"ascend_cxx_pes", "fragments", "nodes"});
}

TEST(AscendFragments, SynchroniseCoresByFlagsOfEachMode) {
  const auto job = run_clean(2, "off", {"ascend_cxx_pes", "fragments", "flags"});
  for (const char* message : {"shmemx_core_flag_set: there is no flag 16 with mode 0 (flags 0 to 15, modes 0 to 2)",
                              R"(shmemx_core_barrier_by: "gba" is not an algorithm of barriers)"}) {
    EXPECT_THAT(job.output, HasSubstr(message));
  }
}

TEST(AscendFragments, WaitNoLongerThanTheTimeoutAndSayForWhat) {
  const std::pair<const char*, const char*> waits[] = {
      {"absent",
       "\\(npu_v3\\) on the words of the team timed out after [0-9]+ ms \\(SHMEM_BARRIER_TIMEOUT\\); it waited for PE "
       "0 "},
      {"unset-flag", "there is flag 0, of which this core has got 0 counts and taken 0"},
      {"unsignalled", "there is 0, which has not reached 1"},
  };
  for (const auto& [what, message] : waits) {
    const auto run = [what = what](int seconds) {
      return run_pes(3, "off", {"ascend_cxx_pes", "fragments", what},
                     {"SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)});
    };
    const auto says_it =
        AllOf(Field(&Outcome::exit, Property(&Exit::clean, true)), Field(&Outcome::output, ContainsRegex(message)));
    const auto job = with_timeouts(run, Matches(says_it));
    EXPECT_THAT(job, says_it) << what << job.output;
  }
}

}  // namespace
