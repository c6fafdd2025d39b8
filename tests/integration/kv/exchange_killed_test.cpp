// SPDX-License-Identifier: Apache-2.0
// Members of an exchange that are killed and stopped while the others go on: every byte that arrives is right.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "tests/support/process.hpp"

namespace {

using test_support::Process;
using test_support::Seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLimit{20};

class ExchangeKilled : public testing::Test {
 protected:
  std::unique_ptr<Process> start(const std::string& role, int number = 0) {
    return std::make_unique<Process>(
        std::vector<std::string>{test_support::test_program("exchange_worker"), role, name_, std::to_string(number)});
  }
  static void expect_ready(Process& process) {
    EXPECT_TRUE(process.wait_for_output("ready\n", kLimit)) << process.output();
  }
  /// It lives, and does things: it prints two further lines.
  static void expect_goes_on(Process& process) {
    const auto lines = [&] {
      const std::string output = process.output();
      return std::count(output.begin(), output.end(), '\n');
    };
    const auto before = lines();
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (lines() < before + 2 && process.running() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(process.running()) << process.output();
    EXPECT_GE(lines(), before + 2) << process.output();
  }

  const std::string name_ = "killed-" + std::to_string(::getpid());
};

TEST_F(ExchangeKilled, OwnersThatDieWhileTheyAreRead) {
  const auto steady = start("own", 0);
  auto other = start("own", 1);
  const auto reader = start("read");
  expect_ready(*reader);
  for (int i = 0; i < 5; ++i) {
    expect_ready(*other);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    other->signal(SIGKILL);
    EXPECT_TRUE(other->wait(kLimit));
    other = start("own", 1);
  }
  expect_goes_on(*steady);
  expect_goes_on(*reader);
  EXPECT_THAT(reader->output(), Not(HasSubstr("wrong")));
  EXPECT_THAT(reader->output(), HasSubstr("corrupt 0 "));
}

TEST_F(ExchangeKilled, ReadersThatDieWhileTheyHoldLeases) {
  const auto owner = start("own", 0);
  expect_ready(*owner);
  const auto reader = start("read");
  for (int i = 0; i < 5; ++i) {
    const auto holder = start("hold");
    const auto killed = start("read");
    expect_ready(*holder);
    expect_ready(*killed);
    holder->signal(SIGKILL);
    killed->signal(SIGKILL);
    EXPECT_TRUE(holder->wait(kLimit) && killed->wait(kLimit));
  }
  expect_goes_on(*owner);
  expect_goes_on(*reader);
}

TEST_F(ExchangeKilled, MembersThatAreStopped) {
  const auto owner = start("own", 0);
  const auto stopped_owner = start("own", 1);
  const auto stopped_reader = start("read");
  expect_ready(*stopped_owner);
  expect_ready(*stopped_reader);
  stopped_owner->stop();
  stopped_reader->stop();
  expect_goes_on(*owner);
  const auto reader = start("read");  // joins although two do not answer
  expect_ready(*reader);
  expect_goes_on(*reader);
  stopped_owner->resume();
  stopped_reader->resume();
  expect_goes_on(*stopped_owner);
  expect_goes_on(*stopped_reader);
}

}  // namespace
