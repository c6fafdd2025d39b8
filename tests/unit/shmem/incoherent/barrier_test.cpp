// SPDX-License-Identifier: Apache-2.0
// Every barrier algorithm on memory that is not coherent.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/incoherent/barrier_run.hpp"

namespace {

using incoherent::alike;
using incoherent::BarrierRun;
using incoherent::BarrierSetup;
using shmem::Algorithm;

#if defined(__SANITIZE_THREAD__)
constexpr bool kFew = true;  // fibers are slow under TSan, and a single thread has no races to find
#else
constexpr bool kFew = false;
#endif

void expect_right(const BarrierSetup& setup, int seeds) {
  BarrierRun run(setup);
  for (int seed = 0; seed < seeds; ++seed) {
    if (const auto failure = run.run(static_cast<std::uint64_t>(seed))) {
      FAIL() << *failure;
    }
  }
}

/// PEs with different numbers of cores.
std::vector<int> unlike(int pes) {
  std::vector<int> cores_of(static_cast<std::size_t>(pes));
  std::ranges::generate(cores_of, [pe = 0]() mutable { return 1 + pe++ * 2 % 3; });
  return cores_of;
}

class IncoherentBarrierTest : public testing::TestWithParam<shmem::AlgorithmSpec> {
 protected:
  static Algorithm algorithm() { return GetParam().algorithm; }
};
INSTANTIATE_TEST_SUITE_P(Algorithms, IncoherentBarrierTest, testing::ValuesIn(shmem::kAlgorithms),
                         [](const auto& spec) { return std::string(spec.param.name); });

TEST_P(IncoherentBarrierTest, FewPes) {
  const int seeds = test_support::repeats(8, 2000);
  for (int pes = 1; pes <= 17; ++pes) {
    expect_right({.cores_of = unlike(pes), .algorithms = {algorithm()}}, seeds);
    for (int cores = 1; cores <= (kFew ? 0 : 3); ++cores) {
      expect_right({.cores_of = alike(pes, cores), .algorithms = {algorithm()}}, seeds);
    }
  }
}

TEST_P(IncoherentBarrierTest, ManyPes) {
  const int seeds = test_support::repeats(2, 200);
  for (const int pes : {31, 32, 33, 64}) {
    expect_right({.cores_of = unlike(pes), .algorithms = {algorithm()}}, seeds);
  }
}

TEST_P(IncoherentBarrierTest, AllPes) {
  expect_right({.cores_of = alike(708, 1), .barriers = 2, .algorithms = {algorithm()}}, test_support::repeats(1, 50));
}

TEST_P(IncoherentBarrierTest, EveryTuning) {
  for (const int pes : {2, 5, 9, 13}) {
    for (int number = 2; number <= 8; ++number) {
      const shmem::BarrierTuning tuning{.radix = number, .group = number - 1, .oversubscribed = number % 2 == 0};
      expect_right({.cores_of = alike(pes, 2), .algorithms = {algorithm()}, .tuning = tuning},
                   test_support::repeats(2, 500));
    }
  }
}

TEST(IncoherentBarrierTest, ATeamMayChangeItsAlgorithm) {
  incoherent::Random random(1);
  for (int change = 0; change < test_support::repeats(40, 4000); ++change) {
    BarrierSetup setup{.cores_of = alike(1 + static_cast<int>(random.below(9)), 1 + static_cast<int>(random.below(3))),
                       .barriers = 8,
                       .tuning = {.radix = 2 + static_cast<int>(random.below(7)),
                                  .group = 1 + static_cast<int>(random.below(4)),
                                  .oversubscribed = random.chance(512)}};
    for (int barrier = 0; barrier < setup.barriers; ++barrier) {
      setup.algorithms.push_back(shmem::kAlgorithms[random.below(shmem::kAlgorithms.size())].algorithm);
    }
    expect_right(setup, 3);
  }
}

}  // namespace
