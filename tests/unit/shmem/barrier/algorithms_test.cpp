// SPDX-License-Identifier: Apache-2.0
// Every barrier algorithm on threads, for many team sizes and numbers of cores.
#include <gtest/gtest.h>

#include "tests/unit/shmem/barrier_threads.hpp"

namespace {

using shmem_test::BarrierRun;
using shmem_test::check_as_threads;

class BarrierAlgorithms : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(BarrierAlgorithms, LetNoMemberLeaveBeforeAllHaveEntered) {
  const auto [index, pes] = GetParam();
  BarrierRun run{.algorithm = shmem_test::algorithm_or_mixed(index), .pes = pes};
  if (pes > 33) {
    run.barriers = shmem_test::barriers_for(pes);
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
    return;
  }
  run.barriers = shmem_test::barriers_for(pes) / 4;
  for (const int cores : {1, 2, 3}) {
    run.cores = cores;
    EXPECT_EQ(check_as_threads(run), "") << to_string(run);
  }
  run.uneven = true;
  EXPECT_EQ(check_as_threads(run), "") << to_string(run);
}

std::string name_of_case(const testing::TestParamInfo<BarrierAlgorithms::ParamType>& info) {
  const auto algorithm = shmem_test::algorithm_or_mixed(std::get<0>(info.param));
  return std::string(algorithm ? name_of(*algorithm) : "mixed") + "_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Threads, BarrierAlgorithms,
                         testing::Combine(testing::Range(std::size_t{0}, shmem::kAlgorithms.size() + 1),
                                          testing::ValuesIn(shmem_test::kTeamSizes)),
                         name_of_case);

}  // namespace
