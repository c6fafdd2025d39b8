// SPDX-License-Identifier: Apache-2.0
// Engines that are killed while they put blocks, and holders that are killed, stopped and started again.
#include <gmock/gmock.h>
#include <signal.h>

#include <cerrno>
#include <memory>
#include <random>
#include <thread>

#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/integration/kv/holder_worker.hpp"
#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"

namespace {

using namespace holder_worker;  // NOLINT(google-build-using-namespace): what the test is about
using test_support::Process;
using test_support::Seconds;

constexpr Seconds kLimit{60};
/// Longer than a machine is busy.
constexpr const char* kPatientMs = "60000";

template <typename Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class HolderKilled : public testing::Test {
 protected:
  ~HolderKilled() override { shmemx_exchange_close(reader_); }

  std::unique_ptr<Process> hold() {
    auto holder = std::make_unique<Process>(
        std::vector<std::string>{test_support::program("kv_exchange"), "hold", name_, "--bytes", "48MiB"});
    EXPECT_TRUE(holder->wait_for_output("kv_exchange: holding", kLimit)) << holder->output();
    return holder;
  }
  std::unique_ptr<Process> start(std::size_t worker, const char* answer_ms = kPatientMs) {
    auto process = std::make_unique<Process>(std::vector<std::string>{
        test_support::test_program("holder_worker"), name_, dir_.file("board"), std::to_string(worker), answer_ms});
    EXPECT_TRUE(process->wait_for_output("ready\n", kLimit)) << process->output();
    return process;
  }
  void join() {
    shmemx_exchange_options_t options{};
    options.join_ms = 60'000;
    ASSERT_EQ(shmemx_exchange_open(name_.c_str(), &options, &reader_), 0) << shmemx_error_text();
    ASSERT_EQ(shmemx_exchange_use_holder(reader_, nullptr, 60'000), 0);
  }
  shmemx_exchange_holder_stats_t stats() {
    shmemx_exchange_holder_stats_t stats{};
    EXPECT_EQ(shmemx_exchange_holder_stats(reader_, &stats), 0) << shmemx_error_text();
    return stats;
  }
  Work& work(std::size_t worker) { return board_->work.at(worker); }

  /// Every block that the holder has is that of its key, whole. Returns their number.
  std::size_t check_all() {
    std::size_t count = 0;
    std::vector<shmemx_exchange_member_t> members(SHMEMX_EXCHANGE_MOST_MEMBERS);
    const int others = shmemx_exchange_members(reader_, members.data(), members.size());
    for (int i = 0; i < others; ++i) {
      std::uint64_t cursor = 0;
      shmemx_exchange_name_t key{};
      shmemx_exchange_block_t block{};
      while (shmemx_exchange_list(reader_, members[static_cast<std::size_t>(i)].seat, &cursor, &key, &block, 1) == 1) {
        std::string bytes(block.bytes, '\0');
        void* const to = bytes.data();
        const int code = shmemx_exchange_pull(reader_, &block, &to, 1, nullptr, nullptr);
        if (code == -ESTALE) {
          continue;  // evicted since
        }
        EXPECT_EQ(code, 0) << shmemx_error_text();
        const std::string text(reinterpret_cast<const char*>(key.data), key.bytes);
        const std::uint64_t number = std::strtoull(text.c_str() + text.rfind(' '), nullptr, 10);
        EXPECT_EQ(block.bytes, bytes_of(number)) << text;
        EXPECT_TRUE(bytes == block_of(text, block.bytes)) << text;
        ++count;
      }
    }
    return count;
  }
  /// None is left that was being written, and nothing of an engine that has gone.
  void expect_returned() {
    EXPECT_TRUE(soon([&] {
      const auto now = stats();
      return now.writing_bytes == 0 && now.engines == 1;
    })) << stats().writing_bytes
        << " bytes are being written by " << stats().engines << " engines";
  }

  const std::string name_ = "held-" + std::to_string(::getpid());
  test_support::TempDir dir_;
  SharedBoard board_{dir_.file("board")};
  shmemx_exchange_t* reader_ = nullptr;
};

/// At any moment of a put: its block is there as a whole, or not at all. The next process finds what was stored.
TEST_F(HolderKilled, EnginesAtEachStepOfAWrite) {
  const auto holder = hold();
  join();
  std::mt19937 random(47);
  const int kills = test_support::repeats(20, 500);
  std::size_t checked = 0;
  for (int i = 0; i < kills; ++i) {
    auto engine = start(0);
    const std::uint64_t before = work(0).begun.load();
    EXPECT_TRUE(soon([&] { return work(0).begun.load() > before; }));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5'000));
    engine->signal(SIGKILL);
    EXPECT_TRUE(engine->wait(kLimit));
    EXPECT_EQ(engine->output(), "ready\n");
    expect_returned();
    checked += check_all();
    ASSERT_EQ(work(0).wrong.load(), 0);
    ASSERT_FALSE(HasFailure()) << "after " << i + 1 << " kills";
  }
  const auto last = start(0);  // finds the last block
  std::printf("%d kills: %lu blocks begun, %lu stored by the holder, %zu looked at, all right\n", kills,
              work(0).begun.load(), stats().stored, checked);
  EXPECT_GT(stats().stored, 0U);
}

/// Engines that put go on: they fail while there is no holder, and find the next one.
TEST_F(HolderKilled, HoldersThatEnginesPutInto) {
  auto holder = hold();
  join();
  const std::array<std::unique_ptr<Process>, 2> engines{start(0, "100"), start(1, "100")};
  for (int i = 0; i < test_support::repeats(5, 50); ++i) {
    std::array<std::uint64_t, 2> before{work(0).stored.load(), work(1).stored.load()};
    EXPECT_TRUE(soon([&] { return work(0).stored.load() > before[0] && work(1).stored.load() > before[1]; }));
    check_all();
    std::array<std::uint64_t, 2> failed{work(0).failed.load(), work(1).failed.load()};
    holder->signal(SIGKILL);
    EXPECT_TRUE(holder->wait(kLimit));
    EXPECT_TRUE(soon([&] { return work(0).failed.load() > failed[0] && work(1).failed.load() > failed[1]; }));
    holder = hold();
    for (auto& one : board_->work) {
      one.stored.store(0);  // it is empty
    }
  }
  EXPECT_TRUE(soon([&] { return work(0).stored.load() > 0 && work(1).stored.load() > 0; }));
  EXPECT_EQ(work(0).wrong.load(), 0);
  EXPECT_EQ(work(1).wrong.load(), 0);
  EXPECT_TRUE(engines[0]->running() && engines[1]->running());
  EXPECT_TRUE(soon([&] { return check_all() > 0; }));
}

TEST_F(HolderKilled, AStoppedHolderDelaysNoReader) {
  const auto holder = hold();
  join();
  const auto engine = start(0, "100");
  EXPECT_TRUE(soon([&] { return work(0).stored.load() > 20; }));
  holder->stop();
  const std::uint64_t failed = work(0).failed.load();
  EXPECT_TRUE(soon([&] { return work(0).failed.load() > failed + 3; }));
  EXPECT_GT(check_all(), 0U) << "what is there can be read";
  holder->resume();
  const std::uint64_t before = work(0).stored.load();
  EXPECT_TRUE(soon([&] { return work(0).stored.load() > before; }));
  EXPECT_EQ(work(0).wrong.load(), 0);
  std::printf("the longest put took %.1f ms\n", static_cast<double>(work(0).longest_ns.load()) / 1e6);
}

TEST_F(HolderKilled, ASecondHolderIsRefused) {
  const auto holder = hold();
  const auto second =
      test_support::run({test_support::program("kv_exchange"), "hold", name_, "--bytes", "4MiB"}, {}, kLimit);
  EXPECT_EQ(second.exit.code, 1);
  EXPECT_THAT(second.output, testing::HasSubstr("another process holds it already"));
  holder->signal(SIGTERM);
  EXPECT_EQ(holder->wait(kLimit)->code, 0);
}

}  // namespace
