// SPDX-License-Identifier: Apache-2.0
// The end of a process by exit() and by the return of main() while other threads are in calls of exchanges, and the end
// of the library in one that goes on.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <tuple>

#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"

namespace {

class ExchangeExit : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

/// Also while transfers from another node are under way, and UCX's threads run.
TEST_P(ExchangeExit, EndsAtOnceWithItsStatus) {
  const auto& [how, where] = GetParam();
  if (std::string(where) == "nodes" && !KV_WITH_UCX) {
    GTEST_SKIP() << "built without UCX";
  }
  const int times = test_support::repeats(5, 50);
  for (int i = 0; i < times && !HasFailure(); ++i) {
    const std::string status = i % 2 == 0 ? "3" : "0";
    const auto outcome = test_support::run({test_support::test_program("exchange_exit_worker"), how, where, status}, {},
                                           test_support::Seconds{70});
    EXPECT_EQ(outcome.exit.signal, 0) << outcome.output;
    EXPECT_EQ(std::to_string(outcome.exit.code), status) << outcome.output;
    EXPECT_EQ(outcome.output, "");
  }
}

TEST(ExchangeLibrary, MayBeUnloadedWhileAnExchangeIsOpen) {
  const auto program = test_support::run(
      {test_support::test_program("unloads_library"), KV_LIBRARY, "unloaded-" + std::to_string(::getpid())}, {});
  EXPECT_TRUE(program.exit.clean()) << program.output;
  EXPECT_EQ(program.output, "unloaded\n");
}

INSTANTIATE_TEST_SUITE_P(Ways, ExchangeExit,
                         testing::Combine(testing::Values("exit", "return"), testing::Values("here", "nodes")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param);
                         });

}  // namespace
