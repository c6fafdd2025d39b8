// SPDX-License-Identifier: Apache-2.0
// Calls made by kernels, on the cores of real PEs.
#include "shmem/config/barrier_choice.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

class Kernels : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(Kernels, SynchroniseAllCoresOfAllPes) {
  const auto [pes, gba] = GetParam();
  run_clean(pes, gba, {"shmem_pes", "kernel", "barriers"});
}

TEST_P(Kernels, CallWhatCoresCanCall) {
  const auto [pes, gba] = GetParam();
  run_clean(pes, gba, {"shmem_pes", "kernel_calls"});
}

INSTANTIATE_TEST_SUITE_P(Jobs, Kernels,
                         Values(std::tuple{1, "off"}, std::tuple{2, "off"}, std::tuple{3, "fake"},
                                std::tuple{8, "off"}),
                         kNameByParameters);

TEST(KernelBarriers, WorkWithEveryAlgorithm) {
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    run_clean(3, "off", {"shmem_pes", "kernel", "algorithm"}, {std::string("SHMEM_BARRIER_ALGORITHM=") + spec.name});
  }
}

/// A job whose waits time out, which must end with this code.
void expect_timeouts(int code, int pes, const char* gba, const char* what) {
  const auto run = [&](int seconds) {
    const std::string half = std::to_string(0.5 * seconds);  // there are several waits one after the other
    return run_pes(pes, gba, {"shmem_pes", "kernel", what}, {"SHMEM_BARRIER_TIMEOUT=" + half}, Seconds{300});
  };
  const auto job = with_timeouts(run, [code](const Outcome& ended) { return ended.exit.code == code; });
  EXPECT_EQ(job.exit.code, code) << job.output;
}

TEST(KernelWaits, EndAndNameTheMissingPe) {
  for (const char* gba : {"off", "fake"}) {
    expect_timeouts(21, 3, gba, "lost-pe");
  }
}

TEST(KernelWaits, EndWhenACoreIsMissing) {
  expect_timeouts(0, 2, "off", "lost-core");
}

TEST(KernelWaits, EndAfterTheTimeout) {
  expect_timeouts(21, 2, "off", "lost-waits");
}

TEST(KernelWaits, EndWithTheJob) {
  for (int way = 0; way < 7; ++way) {
    const auto job = run_pes(2, "off", {"shmem_pes", "kernel", "ended-wait-" + std::to_string(way)});
    EXPECT_EQ(job.exit.code, 22) << way << job.output;
  }
}

struct Mistake {
  const char* name;
  const char* message;  // that the output must contain
};

class KernelMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(KernelMistakes, EndTheJobWithAMessageThatNamesThem) {
  const auto job = run_pes(2, "off", {"shmem_pes", "kernel", GetParam().name});
  EXPECT_NE(job.exit.code, 0) << job.output;
  EXPECT_EQ(job.exit.signal, 0) << job.output;
  EXPECT_THAT(job.output, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Each, KernelMistakes,
                         Values(Mistake{"no-core", "shmemx_core_sync: this thread runs no kernel"},
                                Mistake{"old-core", "shmemx_core_barrier: this thread runs no kernel"},
                                Mistake{"kernel-malloc", "shmem_malloc: a kernel cannot call it"},
                                Mistake{"kernel-split", "shmem_team_destroy: a kernel cannot call it"},
                                Mistake{"kernel-finalize", "shmem_finalize: a kernel cannot call it"},
                                Mistake{"vec", "shmemx_barrier_all_vec: this thread runs no kernel"},
                                Mistake{"list-vec", "shmemx_partial_barrier_vec: this thread runs no kernel"},
                                Mistake{"pool", "shmemx_core_sync_pool: this thread runs no kernel"},
                                Mistake{"kernel-barrier-team", "shmemx_barrier_vec: 99 is not a team"},
                                Mistake{"kernel-compare", "shmemx_wait_until: 6 is not a comparison"},
                                Mistake{"kernel-address", "shmemx_test: 4 bytes at the given address are not inside"},
                                Mistake{"kernel-alignment", "shmemx_test: the given address is not aligned"},
                                Mistake{"kernel-operation", "shmemx_signal32_op: 2 is neither SHMEM_SIGNAL_SET"},
                                Mistake{"kernel-pe", "shmemx_signal32_op: there is no PE 2"},
                                Mistake{"kernel-word",
                                        "shmemx_sync_set: the given address is not that of a word of a pool"},
                                Mistake{"kernel-indices", "shmemx_wait_until_some: the indices have no destination"},
                                Mistake{"stream-team", "shmemx_barrier_on_stream: 17 is not a team"},
                                Mistake{"stream-old-team", "shmemx_barrier_on_stream: 2 is not a team"},
                                Mistake{"kernel-team", "shmem_team_sync: 17 is not a team"}),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
