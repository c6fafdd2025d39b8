// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace {

using test_support::processes_matching;
using test_support::run;
using test_support::Seconds;

/// Runs the tests whose names match `filter`.
test_support::Outcome tests(const std::string& filter) {
  return run({test_support::test_program("tests_of_each_kind"), "--gtest_filter=" + filter});
}

class MainOfTests : public testing::Test {
 protected:
  void SetUp() override {
    if (test_support::kEmulated) {
      GTEST_SKIP() << "an emulator cannot start programs of the build tree";
    }
  }
};

TEST_F(MainOfTests, ReportsASkippedTest) {
  const auto outcome = tests("*Passes:*IsSkipped");
  EXPECT_EQ(outcome.exit.code, 77) << outcome.output;
  EXPECT_THAT(outcome.output, testing::HasSubstr("on purpose"));
}

TEST_F(MainOfTests, ReportsAFailureBeforeASkippedTest) {
  EXPECT_EQ(tests("*").exit.code, 1);
}

TEST_F(MainOfTests, SucceedsIfAllPass) {
  EXPECT_EQ(tests("*Passes").exit.code, 0);
}

TEST_F(MainOfTests, RunsOnlyTheTestsInTheGivenFiles) {
  const std::string program = test_support::test_program("tests_of_each_kind");
  const auto one = run({program, "passing_test.cpp"});
  EXPECT_EQ(one.exit.code, 0) << one.output;
  EXPECT_THAT(one.output, testing::HasSubstr("1 test from"));
  EXPECT_EQ(run({program, "kinds/skipped_test.cpp", "passing_test.cpp"}).exit.code, 77);
  const auto none = run({program, "sing_test.cpp"});
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_EQ(none.output, "no test is in sing_test.cpp\n");
}

TEST(Process, EndsWithATestThatIsKilled) {
  const test_support::TempDir dir;
  const std::string name = dir.file("followed");
  std::ofstream(name).flush();
  const pid_t test = ::fork();
  if (test == 0) {
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

std::vector<std::string> shell(const std::string& script) {
  return {"sh", "-c", script};
}

TEST(Process, HasTheRequestedOutputAndEnvironment) {
  const std::string script = "echo out; echo error >&2; echo $WORD; exit 3";
  const std::vector<std::string> environment{"WORD=a=b"};
  const auto both = base::run(shell(script), environment, Seconds{20});
  EXPECT_EQ(both.exit.code, 3);
  EXPECT_EQ(both.output, "out\nerror\na=b\n");
  const auto standard =
      base::run(shell(script), environment, Seconds{20}, {.output = base::Output::kStandardCollected});
  EXPECT_EQ(standard.output, "out\na=b\n");
  const auto none = base::run(shell(script), environment, Seconds{20}, {.output = base::Output::kDiscarded});
  EXPECT_EQ(none.exit.code, 3);
  EXPECT_EQ(none.output, "");
}

TEST(Process, ReportsHowTheProgramEnded) {
  EXPECT_TRUE(run(shell("true")).exit.clean());
  EXPECT_EQ(run(shell("kill -9 $$")).exit.signal, SIGKILL);
  EXPECT_EQ(run({"/no/such/program"}).exit.code, 127);
  EXPECT_EQ(run(shell("sleep 60"), {}, Seconds{0.05}).exit.signal, SIGKILL) << "killed at the limit";
  test_support::Process process(shell("exit 4"));
  EXPECT_EQ(process.wait().code, 4);
  EXPECT_EQ(process.wait(Seconds{0})->code, 4);
  EXPECT_FALSE(process.running());
}

TEST(Process, KillsTheWholeGroup) {
  const test_support::TempDir dir;
  const std::string name = dir.file("grandchild");
  std::ofstream(name).flush();
  {
    test_support::Process process(shell("tail -f " + name + " & echo started; wait"));
    ASSERT_TRUE(process.wait_for_output("started", Seconds{20}));
  }
  EXPECT_TRUE(test_support::none_matching(name));
}

TEST(Process, MayHaveTimeToCleanUp) {
  const test_support::TempDir dir;
  const std::string cleaned = dir.file("cleaned");
  {
    test_support::Process process(
        shell("trap 'echo > " + cleaned + "; exit 0' TERM; echo ready; while :; do sleep 0.01; done"), {},
        {.grace = Seconds{20}});
    ASSERT_TRUE(process.wait_for_output("ready", Seconds{20}));
    process.stop();  // the destructor must resume it for that
  }
  EXPECT_TRUE(std::ifstream(cleaned).good());
}

TEST(Process, StopsAndResumes) {
  test_support::Process process({"cat", "/dev/zero"}, {}, {.output = base::Output::kDiscarded});
  const auto state = [&process] {
    std::ifstream file("/proc/" + std::to_string(process.pid()) + "/stat");
    std::string text;
    file >> text >> text >> text;
    return text;
  };
  process.stop();
  EXPECT_EQ(state(), "T");
  process.resume();
  EXPECT_NE(state(), "T");
  EXPECT_TRUE(process.running());
}

}  // namespace
