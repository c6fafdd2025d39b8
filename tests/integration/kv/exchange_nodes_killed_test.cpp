// SPDX-License-Identifier: Apache-2.0
// Members of an exchange between nodes that are killed and stopped while the others go on: every byte that arrives is
// right, and every failure has its name in bounded time. The nodes are names for this machine (SHMEM_HOST_ID).
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

constexpr Seconds kNodesLimit{30};

class ExchangeNodesKilled : public testing::Test {
 protected:
  void SetUp() override {
    if (!KV_WITH_UCX) {
      GTEST_SKIP() << "built without UCX";
    }
  }
  /// On a node of its own.
  std::unique_ptr<Process> start(const std::string& role, const std::string& members, int number = 0,
                                 const std::string& answer_ms = "20000") {
    return std::make_unique<Process>(
        std::vector<std::string>{test_support::test_program("exchange_worker"), role, name_, std::to_string(number),
                                 members},
        std::vector<std::string>{"SHMEM_HOST_ID=node-" + std::to_string(++nodes_), "EXCHANGE_ANSWER_MS=" + answer_ms});
  }
  static std::string address_of(Process& process) {
    EXPECT_TRUE(process.wait_for_output("at ", kNodesLimit) && process.wait_for_output("\n", kNodesLimit))
        << process.output();
    const std::string output = process.output();
    const auto begin = output.find("at ") + 3;
    return output.substr(begin, output.find('\n', begin) - begin);
  }
  static void expect_ready(Process& process) {
    EXPECT_TRUE(process.wait_for_output("ready\n", kNodesLimit)) << process.output();
  }
  template <typename Done>
  static bool wait_for(Process& process, Done done) {
    const auto end = std::chrono::steady_clock::now() + kNodesLimit;
    while (!done() && process.running() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return done();
  }
  /// It lives, and does things: it prints two further lines.
  static void expect_goes_on(Process& process) {
    const auto lines = [&] {
      const std::string output = process.output();
      return std::count(output.begin(), output.end(), '\n');
    };
    const auto before = lines();
    EXPECT_TRUE(wait_for(process, [&] { return lines() >= before + 2; })) << process.output();
    EXPECT_TRUE(process.running()) << process.output();
  }
  /// The number after `name` in the last line of a reader.
  static long last(Process& process, const std::string& name) {
    const std::string output = process.output();
    const auto at = output.rfind(name + " ");
    return at == std::string::npos ? 0 : std::atol(output.c_str() + at + name.size() + 1);
  }
  /// The number of blocks that a reader has got right grows.
  static void expect_reads(Process& reader) {
    const long before = last(reader, "right");
    EXPECT_TRUE(wait_for(reader, [&] { return last(reader, "right") > before; })) << reader.output();
  }

  const std::string name_ = "nodes-killed-" + std::to_string(::getpid());
  int nodes_ = 0;
};

TEST_F(ExchangeNodesKilled, OwnersThatDieWhileTheyAreRead) {
  const auto steady = start("own", "", 0);
  const std::string members = address_of(*steady);
  auto other = start("own", members, 1);
  const auto reader = start("read", members);
  expect_ready(*reader);
  for (int i = 0; i < 3; ++i) {
    expect_ready(*other);
    expect_goes_on(*reader);
    const long dead = last(*reader, "dead");
    other->signal(SIGKILL);
    EXPECT_TRUE(other->wait(kNodesLimit));
    expect_goes_on(*reader);
    EXPECT_EQ(last(*reader, "silent"), 0) << "the end of a process is noticed at once";
    EXPECT_GE(last(*reader, "dead"), dead);
    other = start("own", members, 1);
  }
  expect_goes_on(*steady);
  expect_reads(*reader);
  EXPECT_THAT(reader->output(), Not(HasSubstr("wrong")));
  EXPECT_THAT(reader->output(), HasSubstr("corrupt 0 "));
}

TEST_F(ExchangeNodesKilled, ReadersThatDieWhileTheyHoldLeases) {
  const auto owner = start("own", "", 0);
  expect_ready(*owner);
  const std::string members = address_of(*owner);
  const auto reader = start("read", members);
  for (int i = 0; i < 3; ++i) {
    const auto holder = start("hold", members);
    const auto killed = start("read", members);
    expect_ready(*holder);
    expect_ready(*killed);
    holder->signal(SIGKILL);
    killed->signal(SIGKILL);
    EXPECT_TRUE(holder->wait(kNodesLimit) && killed->wait(kNodesLimit));
  }
  expect_goes_on(*owner);
  expect_reads(*reader);
}

TEST_F(ExchangeNodesKilled, MembersThatAreStopped) {
  const auto owner = start("own", "", 0);
  expect_ready(*owner);
  const std::string members = address_of(*owner);
  const auto stopped_owner = start("own", members, 1);
  const auto stopped_reader = start("read", members, 0, "1000");
  expect_ready(*stopped_owner);
  expect_ready(*stopped_reader);
  const auto reader = start("read", members, 0, "1000");
  expect_ready(*reader);
  expect_goes_on(*reader);
  stopped_owner->stop();
  stopped_reader->stop();
  expect_goes_on(*owner);
  expect_reads(*reader);  // after the time that it waits for an answer, once
  stopped_owner->resume();
  stopped_reader->resume();
  expect_goes_on(*stopped_owner);
  expect_reads(*stopped_reader);
  for (const auto& one : {&reader, &stopped_reader}) {
    EXPECT_THAT((*one)->output(), Not(HasSubstr("wrong")));
  }
}

}  // namespace
