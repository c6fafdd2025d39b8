// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/process.hpp"

namespace {

using test_support::processes_matching;
using test_support::run;
using test_support::Seconds;

/// Runs the tests whose names match `filter`.
test_support::Outcome tests(const std::string& filter) {
  return run({test_support::test_program("tests_of_each_kind"), "--gtest_filter=" + filter});
}

TEST(MainOfTests, TellsThatATestWasSkipped) {
  const auto outcome = tests("*Passes:*IsSkipped");
  EXPECT_EQ(outcome.exit.code, 77) << outcome.output;
  EXPECT_THAT(outcome.output, testing::HasSubstr("on purpose"));
}

TEST(MainOfTests, TellsAFailureFirst) {
  EXPECT_EQ(tests("*").exit.code, 1);
}

TEST(MainOfTests, IsContentIfAllPass) {
  EXPECT_EQ(tests("*Passes").exit.code, 0);
}

TEST(Process, GoesWithATestThatIsKilled) {
  const test_support::TempDir dir;
  const std::string name = dir.file("followed");
  std::ofstream(name).flush();
  const pid_t test = ::fork();
  if (test == 0) {
    ::setenv("TMPDIR", dir.path().c_str(), 1);  // it will not clean up
    const test_support::Process follower({"tail", "-f", name});
    ::pause();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto wait_for = [&](std::size_t number) {
    while (processes_matching(name).size() != number && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return processes_matching(name).size();
  };
  EXPECT_EQ(wait_for(1), 1U);
  ::kill(test, SIGKILL);
  ::waitpid(test, nullptr, 0);
  EXPECT_EQ(wait_for(0), 0U);
}

}  // namespace
