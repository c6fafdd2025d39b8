// SPDX-License-Identifier: Apache-2.0
// Statements of OpenSHMEM 1.6 that the programs by routine do not show (docs/conformance.md), in C11 and C++.
#include <gtest/gtest.h>

#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::Outcome;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

std::string conformance_program(const std::string& area, const std::string& language) {
  return test_program("openshmem_conformance_" + area + "_" + language + "_pes");
}

constexpr const char* kAreas[] = {"setup",   "memory",      "teams",   "contexts", "rma",
                                  "atomics", "collectives", "signals", "waits",    "locks"};

class Conformance : public testing::TestWithParam<std::tuple<const char*, const char*, int>> {};

TEST_P(Conformance, HoldsWhatIsStated) {
  const auto [area, language, pes] = GetParam();
  const Outcome job = run(oshrun(pes, "off", {conformance_program(area, language)}), {}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(All, Conformance,
                         testing::Combine(testing::ValuesIn(kAreas), testing::Values("c", "cxx"),
                                          testing::Values(1, 2, 3, 5)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" +
                                  std::to_string(std::get<2>(test.param));
                         });

class CheckedConformance : public testing::TestWithParam<const char*> {};

TEST_P(CheckedConformance, IsNotDisturbed) {
  const Outcome job = run(oshrun(3, "off", {conformance_program(GetParam(), "c")}), {"SHMEM_DEBUG=1"}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(All, CheckedConformance, testing::ValuesIn(kAreas),
                         [](const auto& test) { return std::string(test.param); });

/// On two nodes, where calls go through the network.
class ConformanceOnNodes : public testing::TestWithParam<const char*> {};

TEST_P(ConformanceOnNodes, HoldsWhatIsStated) {
  const std::string script = R"(export SHMEM_HOST_ID=node$((OSHRUN_RANK / 2)); exec "$0" "$@")";
  const Outcome job =
      run(oshrun(4, "off", {"bash", "-c", script, conformance_program(GetParam(), "c")}), {}, Seconds{240});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

INSTANTIATE_TEST_SUITE_P(All, ConformanceOnNodes, testing::ValuesIn(kAreas),
                         [](const auto& test) { return std::string(test.param); });

TEST(ConformanceOfVariables, TheHeapHasAllBytesOfItsSize) {
  for (const auto& [size, bytes] :
       {std::pair{"3.1m", "3250586"}, {".5M", "524288"}, {"20971520", "20971520"}, {"1k", "1024"}}) {
    const Outcome job = run(oshrun(2, "off", {conformance_program("memory", "c"), bytes}),
                            {std::string("SHMEM_SYMMETRIC_SIZE=") + size}, Seconds{60});
    EXPECT_TRUE(job.exit.clean()) << size << '\n' << job.output;
  }
}

TEST(ConformanceOfVariables, PrintTheVersion) {
  const Outcome job =
      run(oshrun(2, "off", {conformance_program("memory", "c"), "1"}), {"SHMEM_VERSION=1"}, Seconds{60});
  EXPECT_NE(job.output.find("libshmem"), std::string::npos) << job.output;
}

TEST(ConformanceOfGlobalExit, GivesTheStatusOfOneOfThePesThatCallIt) {
  const Outcome job = run(oshrun(3, "off", {conformance_program("setup", "c"), "each"}), {}, Seconds{60});
  EXPECT_GE(job.exit.code, 10) << job.output;
  EXPECT_LE(job.exit.code, 12) << job.output;
}

TEST(ConformanceOfGlobalExit, EndsPesThatMakeNoCallsAndWritesOutput) {
  const Outcome job = run(oshrun(3, "off", {conformance_program("setup", "c"), "busy"}), {}, Seconds{60});
  EXPECT_EQ(job.exit.code, 7) << job.output;
  EXPECT_NE(job.output.find("output without an end of line"), std::string::npos) << job.output;
}

}  // namespace
