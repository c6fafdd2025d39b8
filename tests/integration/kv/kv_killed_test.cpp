// SPDX-License-Identifier: Apache-2.0
// kill -9 of a PE in the middle of a shuffle: the others hear of it, by name, and what the plan does not write is
// intact.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <random>

#include "tests/support/job.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"

namespace {

constexpr std::array kKinds{"copy", "move", "cycle", "pairs", "phases"};
constexpr int kPes = 4;

/// How many of the survivors have heard of it, rather than been done before.
int survivors_that_heard(const std::string& output) {
  int heard = 0;
  for (int pe = 0; pe < kPes; ++pe) heard += output.find("PE " + std::to_string(pe) + ": -") != std::string::npos;
  return heard;
}

TEST(KvKilled, TheOthersHearOfItAndTheirOtherBlocksAreIntact) {
  std::minstd_rand random{std::random_device{}()};
  int heard = 0;
  const int kills = test_support::repeats(test_support::kSanitized ? 5 : 15, 200);
  for (int i = 0; i < kills; ++i) {
    const std::string kind = kKinds[static_cast<std::size_t>(i) % kKinds.size()];
    const int victim = static_cast<int>(random() % kPes);
    const std::string permille = std::to_string(random() % 1200);
    SCOPED_TRACE(testing::Message() << kind << ", PE " << victim << " after " << permille << " permille");
    auto command =
        test_support::oshrun(kPes, i % 3 == 0 ? "fake" : "off",
                             {test_support::test_program("kv_killed_pe"), kind, std::to_string(victim), permille});
    command.insert(command.begin() + 1, {"--grace", "60"});  // the survivors end by themselves
    const auto outcome = test_support::run(command, {}, test_support::Seconds{50});
    EXPECT_EQ(outcome.exit.code, 128 + SIGKILL) << outcome.output;
    EXPECT_EQ(outcome.output.find("WRONG"), std::string::npos) << outcome.output;
    for (int pe = 0; pe < kPes; ++pe) {
      const bool survives = outcome.output.find("PE " + std::to_string(pe) + ": survives") != std::string::npos;
      EXPECT_EQ(survives, pe != victim) << outcome.output;
    }
    heard += survivors_that_heard(outcome.output);
  }
  EXPECT_GT(heard, kills / 2);
  EXPECT_TRUE(test_support::none_matching("kv_killed_pe"));
}

}  // namespace
