// SPDX-License-Identifier: Apache-2.0
// Every algorithm, over team sizes and numbers of cores, on threads.
#include <gtest/gtest.h>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/barrier_threads.hpp"

namespace {

using shmem_test::BarrierRun;
using shmem_test::check_as_threads;

/// Barriers of each algorithm and size, of all numbers of cores together.
int barriers_for(int pes) {
  if (pes <= 4) return test_support::repeats(5'000, 100'000);
  if (pes <= 17) return test_support::repeats(1'000, 100'000);
  if (pes <= 64) return test_support::repeats(100, 10'000);
  return test_support::repeats(5, 1'000);
}

class BarrierAlgorithms : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

/// The algorithms, then all of them mixed.
std::optional<shmem::Algorithm> algorithm_of(std::size_t i) {
  return i < shmem::kAlgorithms.size() ? std::optional(shmem::kAlgorithms[i].algorithm) : std::nullopt;
}

TEST_P(BarrierAlgorithms, LetNobodyLeaveBeforeAllHaveEntered) {
  const auto [index, pes] = GetParam();
  BarrierRun run{.algorithm = algorithm_of(index), .pes = pes};
  if (pes > 33) {
    run.barriers = barriers_for(pes);
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
    return;
  }
  run.barriers = barriers_for(pes) / 4;
  for (const int cores : {1, 2, 3}) {
    run.cores = cores;
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
  }
  run.uneven = true;
  EXPECT_EQ(check_as_threads(run), "") << to_string(run);
}

std::string name_of_case(const testing::TestParamInfo<BarrierAlgorithms::ParamType>& info) {
  const auto algorithm = algorithm_of(std::get<0>(info.param));
  return std::string(algorithm ? name_of(*algorithm) : "mixed") + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Small, BarrierAlgorithms,
                         testing::Combine(testing::Range(std::size_t{0}, shmem::kAlgorithms.size() + 1),
                                          testing::Range(1, 18)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Large, BarrierAlgorithms,
                         testing::Combine(testing::Range(std::size_t{0}, shmem::kAlgorithms.size() + 1),
                                          testing::Values(31, 32, 33, 64, 708)),
                         name_of_case);

}  // namespace
