// SPDX-License-Identifier: Apache-2.0
// Members of an exchange between nodes that are killed and stopped while the others go on: every byte that arrives is
// right, and every failure has its name in bounded time. The nodes are names for this machine (SHMEM_HOST_ID).
#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/integration/kv/exchange_killed.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"

namespace {

using namespace exchange_killed;  // NOLINT(google-build-using-namespace): the test itself
using exchange_test::connected_member;
using exchange_test::Member;

constexpr long kAnswerMs = 60'000;
constexpr long kShortAnswerMs = 1'000;

class ExchangeNodesKilled : public Workers {
 protected:
  void SetUp() override {
    if (!KV_WITH_UCX) {
      GTEST_SKIP() << "built without UCX";
    }
  }
  /// On a node of its own.
  std::unique_ptr<Process> start(const std::string& role, const std::string& members, int number = 0,
                                 long answer_ms = kAnswerMs) {
    return std::make_unique<Process>(std::vector<std::string>{test_support::test_program("exchange_worker"), role,
                                                              name_, std::to_string(number), members},
                                     std::vector<std::string>{"SHMEM_HOST_ID=node-" + std::to_string(++nodes_),
                                                              "EXCHANGE_ANSWER_MS=" + std::to_string(answer_ms)});
  }
  static std::string address_of(Process& process) {
    EXPECT_TRUE(process.wait_for_output("at ", kLimit) && process.wait_for_output("\n", kLimit)) << process.output();
    const std::string output = process.output();
    const auto begin = output.find("at ") + 3;
    return output.substr(begin, output.find('\n', begin) - begin);
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
  kill_owners(*reader, other, 3, [&] { return start("own", members, 1); });
  expect_goes_on(*steady);
  expect_reads(*reader);
  static_assert(kBusyMs < kAnswerMs / 2, "else it may have waited for an answer");
  expect_right(*reader, kBusyMs);
}

TEST_F(ExchangeNodesKilled, ReadersThatDieWhileTheyHoldLeases) {
  const auto owner = start("own", "", 0);
  expect_ready(*owner);
  const std::string members = address_of(*owner);
  const auto reader = start("read", members);
  kill_readers(*owner, *reader, 3, [&](const char* role) { return start(role, members); });
}

TEST_F(ExchangeNodesKilled, MembersThatAreStopped) {
  const auto owner = start("own", "", 0);
  expect_ready(*owner);
  const std::string members = address_of(*owner);
  const auto stopped_owner = start("own", members, 1);
  const auto stopped_reader = start("read", members, 0, kShortAnswerMs);
  expect_ready(*stopped_owner);
  expect_ready(*stopped_reader);
  const auto reader = start("read", members, 0, kShortAnswerMs);
  expect_ready(*reader);
  expect_goes_on(*reader);
  stopped_owner->stop();
  stopped_reader->stop();
  expect_goes_on(*owner);
  expect_reads(*reader);
  expect_right(*reader, kShortAnswerMs + kBusyMs);  // it waits for an answer once
  stopped_owner->resume();
  stopped_reader->resume();
  expect_goes_on(*stopped_owner);
  expect_reads(*stopped_reader);
  for (const auto& one : {&reader, &stopped_reader}) {
    EXPECT_THAT((*one)->output(), testing::Not(testing::HasSubstr("wrong")));
  }
}

/// A member of the test's own, and an owner of blocks that is stopped and killed at moments that the test chooses.
class ExchangeNodesStopped : public ExchangeNodesKilled {
 protected:
  void make_pair(std::uint32_t answer_ms) {
    owner_ = start("own", "");
    expect_ready(*owner_);
    reader_ = connected_member(name_, "node of the test", address_of(*owner_), {}, answer_ms);
  }
  /// Once it has been linked, again.
  void expect_found(shmemx_exchange_block_t& block) {
    block = reader_->find_soon("owner 0 block 0");
    ASSERT_EQ(block.status, 0) << owner_->output();
  }
  int list(std::uint32_t seat) {
    std::uint64_t cursor = 0;
    shmemx_exchange_name_t name{};
    shmemx_exchange_block_t block{};
    return shmemx_exchange_list(reader_->get(), seat, &cursor, &name, &block, 1);
  }
  static long ms_since(std::chrono::steady_clock::time_point begin) {
    return static_cast<long>(
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin).count());
  }

  std::unique_ptr<Process> owner_;
  std::unique_ptr<Member> reader_;
};

TEST_F(ExchangeNodesStopped, ACallEndsWhenTheTimeForAnAnswerIsOver) {
  constexpr int kTries = 5;
  make_pair(kShortAnswerMs);
  shmemx_exchange_block_t block{};
  for (const bool pulls : {true, false}) {
    expect_found(block);
    owner_->stop();
    const auto begin = std::chrono::steady_clock::now();
    std::string bytes;
    EXPECT_EQ(pulls ? reader_->pull(block, bytes) : list(block.seat), -ETIMEDOUT);
    EXPECT_GE(ms_since(begin), kShortAnswerMs - 10);
    EXPECT_LE(ms_since(begin), kShortAnswerMs + kBusyMs);
    long least = kBusyMs;
    for (int i = 0; i < kTries; ++i) {  // this process may get no processor during some
      const auto next = std::chrono::steady_clock::now();
      EXPECT_EQ(reader_->pull(block, bytes), -EOWNERDEAD) << "it is given up";
      least = std::min(least, ms_since(next));
    }
    EXPECT_LT(least, kShortAnswerMs / 2) << "later calls do not wait";
    owner_->resume();
  }
  expect_found(block);
  EXPECT_EQ(reader_->stats().failed_timeout, 1U);
  EXPECT_EQ(reader_->stats().failed_dead, 2U * kTries) << "after it was given up";
  EXPECT_EQ(reader_->stats().failed_other, 0U);
}

TEST_F(ExchangeNodesStopped, ACallEndsWithTheProcessThatItWaitsFor) {
  make_pair(kAnswerMs);
  for (const bool pulls : {true, false}) {
    shmemx_exchange_block_t block{};
    expect_found(block);
    owner_->stop();
    const auto begin = std::chrono::steady_clock::now();
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));  // until the call waits
      owner_->signal(SIGKILL);
    });
    std::string bytes;
    EXPECT_EQ(pulls ? reader_->pull(block, bytes) : list(block.seat), -EOWNERDEAD);
    EXPECT_LE(ms_since(begin), 1'000 + kBusyMs);
    killer.join();
    EXPECT_TRUE(owner_->wait(kLimit));
    owner_ = start("own", exchange_test::address_of(*reader_));
  }
}

}  // namespace
