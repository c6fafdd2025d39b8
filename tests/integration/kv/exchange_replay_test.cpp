// SPDX-License-Identifier: Apache-2.0
// Eight members replay traces of requests while one after the other is killed and started again: every byte that
// arrives is right, every read that fails does so with the right error, and no member waits for another one.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "tests/integration/kv/exchange_replay.hpp"
#include "tests/integration/kv/exchange_replay_trace.hpp"
#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"
#include "tests/support/traces.hpp"
#include "tools/kv_shuffle/trace.hpp"

namespace {

using exchange_replay::Call;
using exchange_replay::clock_ns;
using exchange_replay::Count;
using exchange_replay::Counts;
using exchange_replay::kMembers;
using exchange_replay::kOfOneRequest;
using exchange_replay::lines_of;
using exchange_replay::SharedBoard;
using test_support::Process;
using test_support::Seconds;

constexpr Seconds kLimit{120};

class ExchangeReplay : public testing::Test {
 protected:
  void start(std::size_t number) {
    members_[number] = std::make_unique<Process>(
        std::vector<std::string>{test_support::test_program("exchange_replay_member"), name_, std::to_string(number),
                                 dir_.file("board"), dir_.file("requests")});
  }
  void kill_and_start_again(std::size_t number) {
    const std::uint32_t start_number = board_->last_start[number].load();
    ASSERT_GT(start_number, 0U);
    board_->start[start_number - 1].killed.store(true);
    board_->start[start_number - 1].end_ns.store(clock_ns());
    board_->kill_ns.store(clock_ns());
    members_[number]->signal(SIGKILL);
    EXPECT_TRUE(members_[number]->wait(kLimit));
    EXPECT_EQ(members_[number]->output(), "ready\n");
    start(number);
    EXPECT_TRUE(members_[number]->wait_for_output("ready\n", kLimit)) << members_[number]->output();
  }

  /// Skips the test without the trace.
  void replay_public(const std::string& file) {
    const std::string path = test_support::public_trace(file);
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << test_support::kNoTrace;
    }
    const auto trace = kv_program::TraceFile::open(path);
    ASSERT_TRUE(trace) << trace.error().text;
    replay(**trace, kTime, kBetweenKills);
  }

  void replay(kv_program::Trace& trace, Seconds time, Seconds between_kills) {
    std::ofstream(dir_.file("requests")) << lines_of(trace, trace.name().size() * 4 * kOfOneRequest);
    ASSERT_TRUE(board_);
    board_->begin_ns.store(clock_ns());
    for (std::size_t i = 0; i < kMembers; ++i) {
      start(i);
    }
    for (const auto& member : members_) {
      ASSERT_TRUE(member->wait_for_output("ready\n", kLimit)) << member->output();
    }
    int kills = 0;
    for (Seconds passed = between_kills; passed <= time; passed += between_kills, ++kills) {
      std::this_thread::sleep_for(between_kills);
      kill_and_start_again(static_cast<std::size_t>(kills * 3) % kMembers);
    }
    const auto end = std::chrono::steady_clock::now() + kLimit;
    auto idle = idle_start();
    while (idle && std::chrono::steady_clock::now() < end) {  // for want of a processor
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      idle = idle_start();
    }
    EXPECT_FALSE(idle) << "start " << idle.value_or(0) << " has not served";
    board_->stop.store(true);
    for (const auto& member : members_) {
      const auto exit = member->wait(kLimit);
      EXPECT_TRUE(exit && exit->clean()) << member->output();
      EXPECT_EQ(member->output(), "ready\n");
    }
    report(trace.name(), kills);
    expect_no_stall();
  }

  std::uint64_t sum(Count Counts::*count) {
    std::uint64_t all = 0;
    for (const auto& counts : board_->counts) {
      all += (counts.*count).load();
    }
    return all;
  }
  /// The longest call of a phase, and why it was.
  void report_longest(std::size_t phase) {
    using Calls = std::array<Call, exchange_replay::kPhases.size()>;
    const auto ms = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e6; };
    const auto running_ns = [](const Call& call) { return call.ns - std::min(call.ns.load(), call.waited_ns.load()); };
    const auto print = [&](const char* which, Calls Counts::*calls, auto measure) {
      const auto longest = std::ranges::max_element(
          board_->counts, {}, [&](const Counts& counts) { return measure((counts.*calls).at(phase)); });
      const Call& call = (*longest.*calls).at(phase);
      std::printf("  %s%s: %.1f ms, of which %.1f ms without a processor; %lu blocks, %lu page faults, %lu sleeps",
                  exchange_replay::kPhases.at(phase), which, ms(call.ns), ms(call.waited_ns), call.blocks.load(),
                  call.faults.load(), call.sleeps.load());
      std::printf(call.after_kill_ns == 0 ? "\n" : ", %.1f s after a kill\n", ms(call.after_kill_ns) / 1000);
    };
    print("", &Counts::longest, [](const Call& call) { return call.ns.load(); });
    print(" while running", &Counts::longest_running, running_ns);
  }
  void report(const std::string& trace, int kills) {
    std::printf(
        "%s: %d kills; requests %lu, blocks published %lu, withdrawn %lu, pulled %lu (%.1f MiB), missing %lu, "
        "stale %lu, owner dead %lu, wrong bytes %lu, wrong errors %lu; the longest calls of members that lived:\n",
        trace.c_str(), kills, sum(&Counts::requests), sum(&Counts::published), sum(&Counts::withdrawn),
        sum(&Counts::pulled), static_cast<double>(sum(&Counts::pulled_bytes)) / (1 << 20), sum(&Counts::missing),
        sum(&Counts::stale), sum(&Counts::dead), sum(&Counts::wrong_bytes), sum(&Counts::wrong_errors));
    for (std::size_t phase = 0; phase < exchange_replay::kPhases.size(); ++phase) {
      report_longest(phase);
    }
    EXPECT_GT(sum(&Counts::pulled), 0U);
    EXPECT_EQ(sum(&Counts::wrong_bytes), 0U);
    EXPECT_EQ(sum(&Counts::wrong_errors), 0U);
  }

  /// A member that was started again, and long ago, and from which no other one has pulled.
  std::optional<std::size_t> idle_start() {
    std::optional<std::size_t> idle;
    std::size_t old = 0;
    for (std::size_t i = kMembers; i < board_->starts.load(); ++i) {
      const auto& start = board_->start[i];
      const std::int64_t end = start.end_ns.load() != 0 ? start.end_ns.load() : clock_ns();
      const bool is_old = start.begin_ns.load() != 0 && std::chrono::nanoseconds(end - start.begin_ns.load()) >= kOld;
      old += is_old ? 1 : 0;
      idle = is_old && start.served.load() == 0 ? i : idle;
    }
    EXPECT_GT(old, 0U);
    return idle;
  }
  /// A call may take long for want of a processor, but not because of other members.
  void expect_no_stall() {
    constexpr std::uint64_t kMostNs = 100'000'000;
    for (std::size_t phase = 0; phase < exchange_replay::kPhases.size(); ++phase) {
      for (std::size_t member = 0; member < kMembers; ++member) {
        const Call& call = board_->counts[member].longest_running.at(phase);
        EXPECT_LT(call.ns.load() - call.waited_ns.load(), kMostNs)
            << exchange_replay::kPhases.at(phase) << " of member " << member;
      }
    }
  }

  static inline const Seconds kTime{static_cast<double>(test_support::repeats(4, 300))};
  static inline const Seconds kBetweenKills{static_cast<double>(test_support::repeats(1, 10))};
  /// The age at which a member has served others: it gets requests several times a second.
  static inline const Seconds kOld{static_cast<double>(test_support::repeats(2, 5))};

  const std::string name_ = "replay-" + std::to_string(::getpid());
  test_support::TempDir dir_;
  SharedBoard board_{dir_.file("board")};
  std::array<std::unique_ptr<Process>, kMembers> members_;
};

TEST_F(ExchangeReplay, OfPromptsThatShareBlocks) {
  replay_public("mooncake_conversation_2000.jsonl");
}

TEST_F(ExchangeReplay, OfPromptsOfTheirOwn) {
  replay_public("azure_llm_inference_conv.csv");
}

TEST_F(ExchangeReplay, OfTheBuiltInTrace) {
  kv_program::BuiltinTrace trace;
  replay(trace, kTime, kBetweenKills);
}

}  // namespace
