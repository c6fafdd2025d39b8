// SPDX-License-Identifier: Apache-2.0
// Statements of OpenSHMEM 1.6 that the programs by routine do not show (docs/conformance.md), in C11 and C++.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr const char* kAreas[] = {"setup",   "memory",      "teams",   "contexts", "rma",
                                  "atomics", "collectives", "signals", "waits",    "locks"};

class Conformance : public testing::TestWithParam<std::tuple<const char*, const char*, int>> {};

TEST_P(Conformance, HoldsWhatIsStated) {
  const auto [area, language, pes] = GetParam();
  run_clean(pes, "off", {std::string("openshmem_") + language + "_pes", std::string("conformance_") + area});
}

INSTANTIATE_TEST_SUITE_P(All, Conformance, Combine(ValuesIn(kAreas), Values("c", "cxx"), Values(1, 2, 3, 5)),
                         kNameByParameters);

class CheckedConformance : public testing::TestWithParam<const char*> {};

TEST_P(CheckedConformance, IsNotDisturbed) {
  run_clean(3, "off", {"openshmem_c_pes", std::string("conformance_") + GetParam()}, {"SHMEM_DEBUG=1"});
}

INSTANTIATE_TEST_SUITE_P(All, CheckedConformance, ValuesIn(kAreas), kNameByParameters);

/// On two nodes, where calls go through the network.
class ConformanceOnNodes : public testing::TestWithParam<const char*> {};

TEST_P(ConformanceOnNodes, HoldsWhatIsStated) {
  run_clean(4, "off", on_nodes("/ 2", {"openshmem_c_pes", std::string("conformance_") + GetParam()}), {}, Seconds{240});
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceOnNodes, ValuesIn(kAreas), kNameByParameters);

TEST(ConformanceOfVariables, TheHeapHasAllBytesOfItsSize) {
  for (const auto& [size, bytes] :
       {std::pair{"3.1m", "3250586"}, {".5M", "524288"}, {"20971520", "20971520"}, {"1k", "1024"}}) {
    run_clean(2, "off", {"openshmem_c_pes", "conformance_memory", bytes},
              {std::string("SHMEM_SYMMETRIC_SIZE=") + size});
  }
}

TEST(ConformanceOfVariables, PrintTheVersion) {
  const Outcome job = run_pes(2, "off", {"openshmem_c_pes", "conformance_memory", "1"}, {"SHMEM_VERSION=1"});
  EXPECT_THAT(job.output, HasSubstr("libshmem"));
}

TEST(ConformanceOfGlobalExit, GivesTheStatusOfOneOfThePesThatCallIt) {
  const Outcome job = run_pes(3, "off", {"openshmem_c_pes", "conformance_setup", "each"});
  EXPECT_GE(job.exit.code, 10) << job.output;
  EXPECT_LE(job.exit.code, 12) << job.output;
}

TEST(ConformanceOfGlobalExit, EndsPesThatMakeNoCallsAndWritesOutput) {
  const Outcome job = run_pes(3, "off", {"openshmem_c_pes", "conformance_setup", "busy"});
  EXPECT_EQ(job.exit.code, 7) << job.output;
  EXPECT_THAT(job.output, HasSubstr("output without an end of line"));
}

}  // namespace
