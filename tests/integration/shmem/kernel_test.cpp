// SPDX-License-Identifier: Apache-2.0
// Calls made by kernels, on the cores of real PEs.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

class Kernels : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(Kernels, MeetOnAllCoresOfAllPes) {
  const auto [pes, gba] = GetParam();
  const auto job = run(oshrun(pes, gba, {test_program("kernel_pes"), "barriers"}), {}, Seconds{100});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(Jobs, Kernels,
                         testing::Values(std::tuple{1, "off"}, std::tuple{2, "off"}, std::tuple{3, "fake"},
                                         std::tuple{5, "off"}, std::tuple{8, "off"}),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
                         });

TEST(KernelWaits, EndWhenAPeDoesNotComeAndSayForWhomTheyWaited) {
  for (const char* gba : {"off", "fake"}) {
    const auto job =
        run(oshrun(3, gba, {test_program("kernel_pes"), "lost-pe"}), {"SHMEM_BARRIER_TIMEOUT=1"}, Seconds{60});
    EXPECT_EQ(job.exit.code, 21) << job.output;
  }
}

TEST(KernelWaits, EndWhenACoreDoesNotCome) {
  const auto job =
      run(oshrun(2, "off", {test_program("kernel_pes"), "lost-core"}), {"SHMEM_BARRIER_TIMEOUT=1"}, Seconds{60});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

struct Mistake {
  const char* name;
  const char* message;  // what the output must say
};

class KernelMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(KernelMistakes, EndTheJobWithAMessageThatNamesThem) {
  const auto job = run(oshrun(2, "off", {test_program("kernel_pes"), GetParam().name}));
  EXPECT_NE(job.exit.code, 0) << job.output;
  EXPECT_EQ(job.exit.signal, 0) << job.output;
  EXPECT_NE(job.output.find(GetParam().message), std::string::npos) << job.output;
}

INSTANTIATE_TEST_SUITE_P(Each, KernelMistakes,
                         testing::Values(Mistake{"no-core", "shmemx_core_sync: this thread runs no kernel"},
                                         Mistake{"old-core", "shmemx_core_barrier: this thread runs no kernel"},
                                         Mistake{"kernel-malloc", "shmem_malloc: a kernel cannot call it"},
                                         Mistake{"kernel-split", "shmem_team_destroy: a kernel cannot call it"},
                                         Mistake{"kernel-finalize", "shmem_finalize: a kernel cannot call it"},
                                         Mistake{"kernel-team", "shmem_team_sync: 17 is not a team"}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
