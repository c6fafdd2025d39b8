// SPDX-License-Identifier: Apache-2.0
// Programs made of fragments of documents about Ascend SHMEM's device code.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

TEST(AscendFragments, AreBarriersOnTheSignalsAndByTheAlgorithmsOfTheirNames) {
  for (const int pes : {1, 2, 3, 8}) {
    run_clean(pes, "off", {"ascend_cxx_pes", "fragments", "barriers"}, {}, Seconds{100});
  }
}

TEST(AscendFragments, ChooseTheirBarriersAlsoIfTheTeamHasTheDevice) {
  run_clean(4, "fake", {"ascend_cxx_pes", "fragments", "barriers"}, {"SHMEM_GBA=require"}, Seconds{100});
}

TEST(AscendFragments, RunOnPesOfAnyNodes) {
  run_clean(3, "off", {"ascend_cxx_pes", "fragments", "nodes"}, {}, Seconds{100});
}

TEST(AscendFragments, SynchroniseCoresByFlagsOfEachMode) {
  const auto job = run_clean(2, "off", {"ascend_cxx_pes", "fragments", "flags"}, {}, Seconds{100});
  for (const char* message : {"shmemx_core_flag_set: there is no flag 16 with mode 0 (flags 0 to 15, modes 0 to 2)",
                              R"(shmemx_core_barrier_by: "gba" is not an algorithm of barriers)"}) {
    EXPECT_THAT(job.output, HasSubstr(message));
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
        run_clean(3, "off", {"ascend_cxx_pes", "fragments", what}, {"SHMEM_BARRIER_TIMEOUT=1"}, Seconds{60});
    EXPECT_THAT(job.output, HasSubstr(message)) << what;
  }
}

}  // namespace
