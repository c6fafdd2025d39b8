// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/pool_barrier.hpp"

#include <gtest/gtest.h>

namespace shmem {
namespace {

/// The words of both parities that npu_v2 uses: its index is phase * (radix - 1) + i - 1 for i below the radix.
int words_of(int radix, int members) {
  int phases = 0;
  for (std::int64_t distance = 1; distance < members; distance *= radix) {
    ++phases;
  }
  return 2 * phases * (radix - 1);
}

TEST(PoolBarrier, HasEnoughWordsForEveryTeam) {
  for (int members = 1; members <= static_cast<int>(kMostPartners); ++members) {
    for (int radix = 2; radix <= kMostRadix; ++radix) {
      const BarrierChoice fitted = fit_to_pool({Algorithm::kNpuV2, {.radix = radix}}, members);
      ASSERT_LE(words_of(fitted.tuning.radix, members), PoolView::kRounds) << members << " members, radix " << radix;
      ASSERT_GE(fitted.tuning.radix, 2);
      ASSERT_LE(fitted.tuning.radix, radix);
    }
  }
}

TEST(PoolBarrier, KeepsTheRadixOfTeamsThatItFits) {
  EXPECT_EQ(fit_to_pool({Algorithm::kNpuV2, {.radix = 8}}, 8).tuning.radix, 8);
  EXPECT_EQ(fit_to_pool({Algorithm::kNpuV2, {.radix = 8}}, 64).tuning.radix, 8);
  EXPECT_EQ(fit_to_pool({Algorithm::kNpuV2, {.radix = 8}}, 65).tuning.radix, 7);
  EXPECT_EQ(fit_to_pool({Algorithm::kNpuV2, {.radix = 4}}, 708).tuning.radix, 4);
}

}  // namespace
}  // namespace shmem
