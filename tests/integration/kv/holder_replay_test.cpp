// SPDX-License-Identifier: Apache-2.0
// Eight engines and a holder, each in namespaces of its own as in pods of one node, replay traces of requests while one
// engine after the other is killed and started again: what it has used before is still there.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/integration/kv/exchange_replay.hpp"
#include "tests/integration/kv/exchange_replay_trace.hpp"
#include "tests/support/pod.hpp"
#include "tests/support/process.hpp"
#include "tests/support/soak.hpp"
#include "tests/support/traces.hpp"

namespace {

using namespace exchange_replay;  // NOLINT(google-build-using-namespace): what the test is about
using test_support::Pod;
using test_support::Seconds;

constexpr Seconds kLimit{60};
constexpr unsigned kLongest = 1200;  // seconds, of a pod

class HolderReplay : public testing::Test {
 protected:
  HolderReplay() {
    ::mkdir(folder_.c_str(), 0700);
    for (std::size_t i = 0; i <= kMembers; ++i) {
      ::mkdir(path_in_pod(i).c_str(), 0700);
    }
    board_ = std::make_unique<SharedBoard>(folder_ + "/board");
  }
  ~HolderReplay() override {
    for (const auto& engine : engines_) {
      end(engine);
    }
    end(holder_);
  }
  static void end(const std::unique_ptr<Pod>& pod) {
    if (pod != nullptr && pod->running()) {
      pod->kill(SIGKILL);
    }
  }
  [[nodiscard]] std::string path_in_pod(std::size_t i) const { return dir_.file("pod-" + std::to_string(i)); }

  /// A program that has the folder under a path of its own, and nothing else in common with the others.
  std::unique_ptr<Pod> start(std::size_t i,
                             const std::function<std::vector<std::string>(const std::string&)>& command) {
    constexpr int kAll = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS;
    const std::string path = path_in_pod(i);
    const auto words = command(path);
    return std::make_unique<Pod>(
        kAll,
        [&] {
          std::vector<char*> arguments;
          for (const auto& word : words) {
            arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
          }
          arguments.push_back(nullptr);
          if (!test_support::live_as_in_container(folder_, path) ||
              ::setenv("SHMEM_EXCHANGE_DIR", path.c_str(), 1) != 0) {
            return Pod::kNotPossible;
          }
          ::execv(arguments[0], arguments.data());
          return 127;
        },
        kLongest);
  }
  void start_engine(std::size_t number) {
    engines_[number] = start(number, [&](const std::string& path) {
      return std::vector<std::string>{test_support::test_program("holder_replay_member"), "replay",
                                      std::to_string(number), path + "/board", path + "/requests"};
    });
  }
  static bool soon(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  /// False: this machine does not permit such namespaces.
  bool start_holder() {
    holder_ = start(kMembers, [](const std::string& path) {
      return std::vector<std::string>{test_support::program("kv_exchange"),
                                      "hold",
                                      "replay",
                                      "--bytes",
                                      std::to_string(kHeld),
                                      "--directory",
                                      path};
    });
    return soon([&] { return std::filesystem::exists(folder_ + "/replay.holder") || !holder_->running(); }) &&
           holder_->running();
  }

  void kill_and_start_again(std::size_t number) {
    const std::uint32_t before = board()->last_start[number].load();
    board()->kill_ns.store(clock_ns());
    engines_[number]->kill(SIGKILL);
    engines_[number]->exit_code();
    start_engine(number);
    EXPECT_TRUE(soon([&] { return board()->last_start[number].load() != before; })) << "engine " << number;
  }
  SharedBoard& board() { return *board_; }

  void replay_public(const std::string& file) {
    const std::string path = test_support::public_trace(file);
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << test_support::kNoTrace;
    }
    const auto trace = kv_program::TraceFile::open(path);
    ASSERT_TRUE(trace) << trace.error().text;
    replay(**trace);
  }

  void replay(kv_program::Trace& trace) {
    std::ofstream(folder_ + "/requests") << lines_of(trace, trace.name().size() * 4 * kOfOneRequest);
    ASSERT_TRUE(*board_);
    if (!start_holder()) {
      GTEST_SKIP() << "this machine does not permit namespaces";
    }
    board()->begin_ns.store(clock_ns());
    for (std::size_t i = 0; i < kMembers; ++i) {
      start_engine(i);
    }
    ASSERT_TRUE(soon([&] { return board()->starts.load() == kMembers; }));
    std::uint64_t before[2] = {0, 0};  // wanted and found
    std::uint64_t after[2] = {0, 0};
    int kills = 0;
    std::vector<std::pair<std::size_t, std::size_t>> killed;  // engine, second
    for (Seconds passed = kBetweenKills; passed <= kTime; passed += kBetweenKills, ++kills) {
      std::this_thread::sleep_for(kBetweenKills);
      const std::size_t number = static_cast<std::size_t>(kills * 3) % kMembers;
      killed.emplace_back(number, static_cast<std::size_t>((clock_ns() - board()->begin_ns.load()) / 1'000'000'000));
      kill_and_start_again(number);
    }
    std::this_thread::sleep_for(kBetweenKills);
    board()->stop.store(true);
    for (std::size_t i = 0; i < kMembers; ++i) {
      EXPECT_EQ(engines_[i]->exit_code(), 0) << "engine " << i;
    }
    const auto window = static_cast<std::size_t>(kBetweenKills.count());
    for (const auto& [number, second] : killed) {
      add(number, second - std::min(second, window), second, before);
      add(number, second + 1, second + 1 + window, after);
    }
    report(trace.name(), kills, before, after);
  }
  void add(std::size_t number, std::size_t begin, std::size_t end, std::uint64_t (&sums)[2]) {
    for (std::size_t i = begin; i < std::min(end, kMostSeconds); ++i) {
      sums[0] += board()->seconds[number][i].wanted.load();
      sums[1] += board()->seconds[number][i].found.load();
    }
  }

  std::uint64_t sum(Count Counts::*count) {
    std::uint64_t all = 0;
    for (const auto& counts : board()->counts) {
      all += (counts.*count).load();
    }
    return all;
  }
  void report(const std::string& trace, int kills, const std::uint64_t (&before)[2], const std::uint64_t (&after)[2]) {
    std::uint64_t looked_for = 0;
    std::uint64_t found = 0;
    for (const Memory& memory : board()->memory) {
      looked_for += memory.looked_for.load();
      found += memory.found.load();
    }
    const auto percent = [](std::uint64_t part, std::uint64_t all) {
      return 100 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(all, 1));
    };
    std::printf(
        "%s: %d kills; requests %lu, blocks stored %lu, pulled %lu (%.1f MiB), stale %lu, not answered in time %lu, "
        "wrong "
        "bytes %lu, wrong errors %lu\n  of the blocks that an engine had used last, %.2f %% found after its restart "
        "(of "
        "%lu)\n  hits in the time between two kills before the end of an engine %.1f %%, after its restart %.1f %%\n",
        trace.c_str(), kills, sum(&Counts::requests), sum(&Counts::published), sum(&Counts::pulled),
        static_cast<double>(sum(&Counts::pulled_bytes)) / (1 << 20), sum(&Counts::stale), sum(&Counts::dead),
        sum(&Counts::wrong_bytes), sum(&Counts::wrong_errors), percent(found, looked_for), looked_for,
        percent(before[1], before[0]), percent(after[1], after[0]));
    for (const Phase phase : {kFind, kPull, kPublish}) {
      std::uint64_t longest = 0;
      for (const Counts& counts : board()->counts) {
        longest = std::max(longest, counts.longest.at(phase).ns.load());
      }
      std::printf("  the longest %s: %.1f ms\n", phase == kPublish ? "put" : kPhases.at(phase),
                  static_cast<double>(longest) / 1e6);
    }
    EXPECT_GT(sum(&Counts::pulled), 0U);
    EXPECT_EQ(sum(&Counts::wrong_bytes), 0U);
    EXPECT_EQ(sum(&Counts::wrong_errors), 0U);
    EXPECT_GT(looked_for, 0U);
    EXPECT_GE(100 * found, 95 * looked_for);
    if (kTime >= Seconds{100}) {  // less is too little to compare
      EXPECT_GE(percent(after[1], after[0]), 0.95 * percent(before[1], before[0]));
    }
  }

  static inline const Seconds kTime{static_cast<double>(test_support::repeats(3, 600))};
  static inline const Seconds kBetweenKills{static_cast<double>(test_support::repeats(1, 10))};

  /// Bytes: of a longer replay more blocks are used again.
  static inline const std::size_t kHeld = static_cast<std::size_t>(test_support::repeats(256, 2048)) << 20;

  test_support::TempDir dir_;
  const std::string folder_ = dir_.file("exchanges");
  std::unique_ptr<SharedBoard> board_;
  std::unique_ptr<Pod> holder_;
  std::array<std::unique_ptr<Pod>, kMembers> engines_;
};

TEST_F(HolderReplay, OfPromptsThatShareBlocks) {
  replay_public("mooncake_conversation_2000.jsonl");
}

TEST_F(HolderReplay, OfTheBuiltInTrace) {
  kv_program::BuiltinTrace trace;
  replay(trace);
}

}  // namespace
