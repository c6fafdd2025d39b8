// SPDX-License-Identifier: Apache-2.0
// Random shuffles between real PEs against a model that shares no code with the library: kv_pes property.
#include <gtest/gtest.h>

#include <random>

#include "tests/integration/kv/kv_nodes.hpp"
#include "tests/support/job.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::repeats;

/// A failure prints its seed: `oshrun -n PES kv_pes property SEED CASES BYTES` repeats it. `pes_a_node`: 0: one node.
/// `memory`: "" or the program's last argument.
void expect_right(int pes, const std::string& gba, int cases, std::size_t bytes, int pes_a_node = 0,
                  const std::string& memory = "") {
  const std::string seed = std::to_string(std::random_device{}());
  const int count = test_support::kSanitized ? (cases + 3) / 4 : cases;
  std::vector<std::string> program{test_support::test_program("kv_pes"), "property", seed, std::to_string(count),
                                   std::to_string(bytes)};
  if (!memory.empty()) {
    program.push_back(memory);
  }
  if (pes_a_node != 0) {
    program = kv_test::on_nodes(pes_a_node, program);
  }
  const auto outcome =
      test_support::run(test_support::oshrun(pes, gba, program), {}, test_support::Seconds{repeats(200, 3600)});
  EXPECT_TRUE(outcome.exit.clean()) << "-n " << pes << " kv_pes property " << seed << " " << count << " " << bytes
                                    << " " << memory << "\n"
                                    << outcome.output;
  for (int pe = 0; pe < pes; ++pe) {
    EXPECT_NE(outcome.output.find("PE " + std::to_string(pe) + ": right\n"), std::string::npos);
  }
}

constexpr std::size_t kSmall = 400'000;
constexpr std::size_t kMedium = 20'000'000;  // so that there is work for several cores
constexpr std::size_t kLarge = 60'000'000;   // and the blocks exceed the processor's caches

TEST(KvProperty, TwoPes) {
  expect_right(2, "off", repeats(60, 20000), kSmall);
}

TEST(KvProperty, ThreePesAndLargeBlocks) {
  expect_right(3, "off", repeats(4, 500), kLarge);
}

TEST(KvProperty, FourPesAndWorkForAllCores) {
  expect_right(4, "off", repeats(8, 1000), kMedium);
}

TEST(KvProperty, FourToEightPes) {
  for (const int pes : {4, 5, 8}) {
    expect_right(pes, "off", repeats(15, 8000), kSmall);
  }
}

TEST(KvProperty, SixteenPes) {
  expect_right(16, "off", repeats(6, 2000), kSmall);
}

/// Few cases: each makes teams and operators, and every call of these is between nodes.
TEST(KvProperty, TwoNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  expect_right(2, "off", repeats(6, 2000), kSmall, 1);
  expect_right(4, "off", repeats(4, 2000), kSmall, 2);
}

TEST(KvProperty, ThreeNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  expect_right(3, "off", repeats(4, 1000), kSmall, 1);
  expect_right(6, "off", repeats(1, 500), kSmall, 2);
}

TEST(KvProperty, LargeBlocksOnTwoNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  expect_right(4, "off", repeats(2, 200), kMedium, 2);
}

TEST(KvProperty, PrivateMemory) {
  for (const char* memory : {"private", "mixed"}) {
    expect_right(2, "off", repeats(20, 4000), kSmall, 0, memory);
    expect_right(5, "off", repeats(8, 2000), kSmall, 0, memory);
    expect_right(3, "off", repeats(3, 300), kMedium, 0, memory);
  }
}

TEST(KvProperty, PrivateMemoryOnTwoNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  for (const char* memory : {"private", "mixed"}) {
    expect_right(4, "off", repeats(3, 500), kSmall, 2, memory);
  }
}

TEST(KvProperty, WithADevice) {
  expect_right(4, "fake", repeats(10, 3000), kSmall);
}

}  // namespace
