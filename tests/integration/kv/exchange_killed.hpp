// SPDX-License-Identifier: Apache-2.0
// Members of an exchange that tests kill and stop: exchange_worker, and what it prints.
#pragma once

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/process.hpp"

namespace exchange_killed {

using test_support::Process;
using test_support::Seconds;

constexpr Seconds kLimit{120};
/// The longest lease that owners allow; see exchange_worker.cpp.
constexpr long kLeaseMs = 200;
/// How much longer than it should a call takes on a machine that is busy with other tests.
constexpr long kBusyMs = 20'000;

class Workers : public testing::Test {
 protected:
  static void expect_ready(Process& process) {
    EXPECT_TRUE(process.wait_for_output("ready\n", kLimit)) << process.output();
  }
  template <typename Done>
  static bool wait_for(Process& process, Done done) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
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
  /// The number after `name` in the last line that has one.
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
  /// What a reader has got was right, and no call took longer.
  static void expect_right(Process& reader, long most_ms) {
    EXPECT_THAT(reader.output(), testing::Not(testing::HasSubstr("wrong")));
    EXPECT_THAT(reader.output(), testing::HasSubstr("corrupt 0 "));
    EXPECT_LE(last(reader, "longest"), most_ms) << reader.output();
  }
  /// Kills `owner` and starts another one until the reader has failed to pull from one that was dead: that depends on
  /// what the reader does at the moment.
  template <typename Start>
  static void kill_owners(Process& reader, std::unique_ptr<Process>& owner, int least, Start start) {
    constexpr int kMost = 30;
    for (int i = 0; i < kMost && (i < least || last(reader, "dead") == 0); ++i) {
      expect_ready(*owner);
      expect_goes_on(reader);
      owner->signal(SIGKILL);
      EXPECT_TRUE(owner->wait(kLimit));
      expect_goes_on(reader);
      owner = start();
    }
    EXPECT_GT(last(reader, "dead"), 0) << reader.output();
    EXPECT_EQ(last(reader, "silent"), 0) << "the end of a process is noticed at once";
  }
  /// Starts and kills readers of `owner` that hold leases and pull, this many times; `reader` goes on.
  template <typename Start>
  static void kill_readers(Process& owner, Process& reader, int times, Start start) {
    for (int i = 0; i < times; ++i) {
      const auto holder = start("hold");
      const auto killed = start("read");
      expect_ready(*holder);
      expect_ready(*killed);
      holder->signal(SIGKILL);
      killed->signal(SIGKILL);
      EXPECT_TRUE(holder->wait(kLimit) && killed->wait(kLimit));
    }
    expect_goes_on(owner);
    EXPECT_LE(last(owner, "longest"), kLeaseMs + kBusyMs) << "leases end with their reader";
    expect_reads(reader);
    expect_right(reader, kBusyMs);
  }
};

}  // namespace exchange_killed
