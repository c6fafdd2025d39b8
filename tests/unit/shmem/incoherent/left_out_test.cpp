// SPDX-License-Identifier: Apache-2.0
// Every fence, dcci, dcci_all and sync in the source of an algorithm is needed: without it some schedule fails.
#include <gtest/gtest.h>

#include "tests/support/soak.hpp"
#include "tests/unit/shmem/incoherent/barrier_run.hpp"

namespace {

using incoherent::alike;
using incoherent::BarrierRun;
using incoherent::BarrierSetup;
using incoherent::Site;
using incoherent::Sites;
using shmem::Algorithm;

/// Several shapes, with numbers of members and cores that are not powers of two: some operations are needed in some
/// shapes only.
std::vector<BarrierSetup> setups_of(Algorithm algorithm) {
  return {{.cores_of = alike(9, 3), .algorithms = {algorithm}},
          {.cores_of = alike(9, 2),
           .barriers = 8,
           .algorithms = {algorithm},
           .tuning = {.radix = 3, .group = 2, .oversubscribed = true}},
          {.cores_of = {1, 3, 2, 3, 1, 2, 3},
           .barriers = 8,
           .algorithms = {algorithm},
           .tuning = {.radix = 2, .group = 3}}};
}

/// All operations that the algorithm executes.
std::vector<Site> sites_of(Algorithm algorithm) {
  std::vector<Site> all;
  for (const BarrierSetup& setup : setups_of(algorithm)) {
    Sites sites;
    EXPECT_EQ(BarrierRun(setup).run(0, sites), std::nullopt);
    for (const Site& site : sites.seen()) {
      if (std::ranges::find(all, site) == all.end()) {
        all.push_back(site);
      }
    }
  }
  return all;
}

/// True if some schedule fails without the operation.
bool is_missed(const Site& site, Algorithm algorithm) {
  const int seeds = test_support::repeats(300, 3000);
  for (const BarrierSetup& setup : setups_of(algorithm)) {
    BarrierRun run(setup);
    for (int seed = 0; seed < seeds; ++seed) {
      Sites sites(site);
      if (run.run(static_cast<std::uint64_t>(seed), sites)) {
        return true;
      }
    }
  }
  return false;
}

/// Whether the operation is in shmem/cores: not every algorithm needs those.
bool is_shared(const Site& site) {
  return site.file.find("shmem/cores/") != std::string_view::npos;
}

class LeftOutTest : public testing::TestWithParam<shmem::AlgorithmSpec> {};
INSTANTIATE_TEST_SUITE_P(Algorithms, LeftOutTest, testing::ValuesIn(shmem::kAlgorithms),
                         [](const auto& spec) { return std::string(spec.param.name); });

TEST_P(LeftOutTest, EveryOperationOfAnAlgorithmIsNeeded) {
  const std::vector<Site> sites = sites_of(GetParam().algorithm);
  EXPECT_GE(sites.size(), 4U);  // at least a fence, two syncs and a dcci_all
  for (const Site& site : sites) {
    if (!is_shared(site)) {
      EXPECT_TRUE(is_missed(site, GetParam().algorithm)) << site.text();
    }
  }
}

/// Not every algorithm needs them: dcci_all at the end of a barrier also writes back the last store.
TEST(LeftOutTest, EveryOperationOfASignalIsNeededByAnAlgorithm) {
  std::vector<std::pair<Site, bool>> shared;
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    for (const Site& site : sites_of(spec.algorithm)) {
      auto known = std::ranges::find(shared, site, &std::pair<Site, bool>::first);
      if (is_shared(site) && known == shared.end()) {
        known = shared.insert(known, {site, false});
      }
      if (is_shared(site) && !known->second) {
        known->second = is_missed(site, spec.algorithm);
      }
    }
  }
  EXPECT_EQ(shared.size(), 2U);  // the dcci of a set and of a wait
  for (const auto& [site, missed] : shared) {
    EXPECT_TRUE(missed) << site.text();
  }
}

/// The failure texts name the actual failure.
TEST(LeftOutTest, FailuresAreNamed) {
  const auto reason_without = [](std::string_view operation) -> std::string {
    BarrierRun run(setups_of(Algorithm::kNpuV3).front());
    for (const Site& site : sites_of(Algorithm::kNpuV3)) {
      Sites sites(site);
      if (site.operation == operation) {
        return run.run(0, sites).value_or("nothing");
      }
    }
    return "no such operation";
  };
  EXPECT_NE(reason_without("sync").find("left barrier"), std::string::npos) << reason_without("sync");
  EXPECT_NE(reason_without("dcci").find("waits for round of PE"), std::string::npos) << reason_without("dcci");
  EXPECT_NE(reason_without("dcci_all").find("in data of core"), std::string::npos) << reason_without("dcci_all");
}

}  // namespace
