// SPDX-License-Identifier: Apache-2.0
// A PE or the launcher is killed at any moment: the job ends, says who it was, and leaves nothing behind.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <random>
#include <thread>

#include "tests/fault/traces.hpp"
#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::oshrun;
using test_support::pid_of;
using test_support::Process;
using test_support::repeats;
using test_support::Seconds;
using test_support::test_program;
using test_support::Traces;

constexpr std::array kPhases{"init", "malloc", "split", "barrier", "finalize"};

/// Different for each job.
std::string new_mark() {
  static int count = 0;
  return "KILLED_TEST_JOB=" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// A job in the middle of `phase`, and what it could leave behind.
class Job {
 public:
  Job(int pes, const char* gba, const char* phase)
      : mark_(new_mark()), traces_(mark_), process_(oshrun(pes, gba, {test_program("phase_pes"), phase}), {mark_}) {}

  /// Others may not have come so far.
  bool wait_for_start_of(int pe) { return process_.wait_for_output("PE " + std::to_string(pe) + " pid", Seconds{60}); }
  Process& process() { return process_; }
  Traces& traces() { return traces_; }

 private:
  std::string mark_;
  Traces traces_;
  Process process_;
};

class Killed : public testing::Test {
 protected:
  static void SetUpTestSuite() { test_support::have_own_sockets(); }

  void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 30000)); }

  void kill_pe(int victim, int pes, const char* gba, const char* phase) {
    Job job(pes, gba, phase);
    ASSERT_TRUE(job.wait_for_start_of(victim)) << job.process().output();
    wait_a_moment();
    job.traces().note_memory();
    const pid_t pid = pid_of(job.process().output(), victim);
    ASSERT_GT(pid, 0) << job.process().output();
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const auto exit = job.process().wait(Seconds{100});
    ASSERT_TRUE(exit) << "still running:\n" << job.process().output();
    EXPECT_EQ(exit->code, 128 + SIGKILL) << job.process().output();
    const std::string message =
        "oshrun: PE " + std::to_string(victim) + " (pid " + std::to_string(pid) + ") was killed by signal 9 (Killed)\n";
    EXPECT_NE(job.process().output().find(message), std::string::npos) << job.process().output();
    EXPECT_GT(job.traces().memory_count(), 0U);
    EXPECT_EQ(job.traces().left(), "");
  }

  void end_launcher(int signal, int pes, const char* gba, const char* phase) {
    Job job(pes, gba, phase);
    ASSERT_TRUE(job.wait_for_start_of(0)) << job.process().output();
    wait_a_moment();
    job.traces().note_memory();
    job.process().signal(signal);
    const auto exit = job.process().wait(Seconds{60});
    ASSERT_TRUE(exit) << job.process().output();
    if (signal == SIGKILL) {
      EXPECT_EQ(exit->signal, SIGKILL);
    } else {
      EXPECT_EQ(exit->code, 128 + signal) << job.process().output();
      EXPECT_NE(job.process().output().find("oshrun: ending the job: signal"), std::string::npos);
    }
    EXPECT_EQ(job.traces().left(), "");
  }

  std::minstd_rand random_{std::random_device{}()};
};

TEST_F(Killed, ThePeIsNamedAndNothingIsLeft) {
  for (int i = 0; i < repeats(20, 200); ++i) {
    const int pes = 2 + i % 3;
    // PE 0 hands out the memory, so it is every other time's victim.
    const int victim = i % 2 == 0 ? 0 : 1 + static_cast<int>(random_() % static_cast<unsigned>(pes - 1));
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(std::string(phase) + ", PE " + std::to_string(victim) + " of " + std::to_string(pes));
    kill_pe(victim, pes, i / 2 % 2 == 0 ? "off" : "fake", phase);
  }
}

TEST_F(Killed, TheLauncherLeavesNothing) {
  for (int i = 0; i < repeats(20, 200); ++i) {
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(phase);
    end_launcher(SIGKILL, 2 + i % 3, i % 2 == 0 ? "off" : "fake", phase);
  }
}

TEST_F(Killed, TheLauncherThatIsAskedToEndLeavesNothing) {
  for (int i = 0; i < repeats(5, 100); ++i) {
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(phase);
    end_launcher(i % 2 == 0 ? SIGTERM : SIGINT, 3, "fake", phase);
  }
}

}  // namespace
