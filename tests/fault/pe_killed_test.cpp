// SPDX-License-Identifier: Apache-2.0
// A PE or the launcher is killed at any moment: the job ends, names the process, and leaves nothing behind.
#include <signal.h>

#include <array>
#include <random>

#include "tests/fault/traces.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr std::array kPhases{"init", "malloc", "split", "barrier", "wait", "finalize", "put", "lock", "sum"};
/// With these a PE may end the job before it, because it loses the network: oshrun names the killed one all the same.
constexpr std::array kPhasesOfNodes{"barrier", "wait", "put", "lock", "sum"};
/// libgba has a handler of SIGBUS while a GBA is open: it must not swallow one that another process sends.
constexpr std::array kSignals{std::pair{SIGKILL, "Killed"},   std::pair{SIGSEGV, "Segmentation fault"},
                              std::pair{SIGABRT, "Aborted"},  std::pair{SIGTERM, "Terminated"},
                              std::pair{SIGBUS, "Bus error"}, std::pair{SIGXCPU, "CPU time limit exceeded"}};
constexpr std::array kGbas{"off", "fake"};

constexpr Seconds kLimit{300};

/// Different for each job.
std::string new_mark() {
  static int count = 0;
  return "KILLED_TEST_JOB=" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

/// A job in the middle of `phase`, and what it could leave behind.
class Job {
 public:
  Job(int pes, const char* gba, const char* phase, bool on_nodes = false)
      : mark_(new_mark()),
        traces_(mark_),
        process_(oshrun(pes, gba, command(phase, on_nodes)),
                 {mark_, "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo", "UCX_WARN_UNUSED_ENV_VARS=n"}) {}

  /// Other PEs may not have started yet.
  bool wait_for_start_of(int pe) { return process_.wait_for_output("PE " + std::to_string(pe) + " pid", kLimit); }
  Process& process() { return process_; }
  Traces& traces() { return traces_; }

 private:
  static std::vector<std::string> command(const char* phase, bool on_nodes) {
    return on_nodes ? test_support::on_nodes("% 2", {"shmem_pes", "phase", phase})
                    : Words{test_program("shmem_pes"), "phase", phase};
  }

  std::string mark_;
  Traces traces_;
  Process process_;
};

class Killed : public testing::Test {
 protected:
  static void SetUpTestSuite() { have_own_sockets(); }

  void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 30000)); }

  struct Kill {
    int victim;
    int pes;
    const char* gba;
    const char* phase;
    std::pair<int, const char*> signal = kSignals[0];
    bool on_nodes = false;
  };

  void kill_pe(const Kill& kill) {
    if (kill.on_nodes && !has_network()) {
      GTEST_SKIP() << kNoNetwork;
    }
    Job job(kill.pes, kill.gba, kill.phase, kill.on_nodes);
    ASSERT_TRUE(job.wait_for_start_of(kill.victim)) << job.process().output();
    wait_a_moment();
    job.traces().note_memory();
    const pid_t pid = pid_of(job.process().output(), kill.victim);
    ASSERT_GT(pid, 0) << job.process().output();
    const auto [signal, name] = kill.signal;
    const bool killed = ::kill(pid, signal) == 0;
    const auto exit = job.process().wait(kLimit);
    ASSERT_TRUE(exit) << "still running:\n" << job.process().output();
    ASSERT_TRUE(killed) << job.process().output();
    EXPECT_EQ(exit->code, 128 + signal) << job.process().output();
    const std::string message = "oshrun: PE " + std::to_string(kill.victim) + " \\(pid " + std::to_string(pid) +
                                "\\) on [^ ]+ was killed by signal " + std::to_string(signal) + " \\(" + name + "\\)";
    EXPECT_THAT(job.process().output(), ContainsRegex(message));
    EXPECT_GT(job.traces().memory_count(), 0U);
    EXPECT_EQ(job.traces().left(), "");
  }

  void end_launcher(int signal, int pes, const char* gba, const char* phase) {
    Job job(pes, gba, phase);
    ASSERT_TRUE(job.wait_for_start_of(0)) << job.process().output();
    wait_a_moment();
    job.traces().note_memory();
    job.process().signal(signal);
    const auto exit = job.process().wait(kLimit);
    ASSERT_TRUE(exit) << job.process().output();
    if (signal == SIGKILL) {
      EXPECT_EQ(exit->signal, SIGKILL);
    } else {
      EXPECT_EQ(exit->code, 128 + signal) << job.process().output();
      EXPECT_THAT(job.process().output(), HasSubstr("oshrun: ending the job: signal"));
    }
    EXPECT_EQ(job.traces().left(), "");
  }

  std::minstd_rand random_{std::random_device{}()};
};

TEST_F(Killed, ThePeIsNamedAndNothingIsLeft) {
  for (int i = 0; i < repeats(20, 200); ++i) {
    const int pes = 2 + i % 3;
    // PE 0 hands out the memory, so it is the victim every other time.
    const int victim = i % 2 == 0 ? 0 : 1 + static_cast<int>(random_() % static_cast<unsigned>(pes - 1));
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(std::string(phase) + ", PE " + std::to_string(victim) + " of " + std::to_string(pes));
    kill_pe({.victim = victim, .pes = pes, .gba = i / 2 % 2 == 0 ? "off" : "fake", .phase = phase});
  }
}

TEST_F(Killed, ThePeIsNamedWhateverTheSignal) {
  constexpr std::size_t kKinds = kSignals.size() * kGbas.size() * 2;
  for (std::size_t i = 0; i < static_cast<std::size_t>(repeats(kKinds, 240)); ++i) {
    const auto signal = kSignals[i % kSignals.size()];
    const char* gba = kGbas[i / kSignals.size() % kGbas.size()];
    const bool on_nodes = i / kSignals.size() / kGbas.size() % 2 == 1;
    SCOPED_TRACE(std::string(signal.second) + ", gba " + gba + (on_nodes ? ", two nodes" : ""));
    kill_pe({.victim = static_cast<int>(i % 3),
             .pes = 3,
             .gba = gba,
             .phase = "barrier",
             .signal = signal,
             .on_nodes = on_nodes});
    if (IsSkipped() || HasFailure()) {
      return;
    }
  }
}

TEST_F(Killed, ThePeIsNamedOnTwoNodes) {
  for (int i = 0; i < repeats(2 * static_cast<int>(kPhasesOfNodes.size()), 200); ++i) {
    const char* phase = kPhasesOfNodes[static_cast<std::size_t>(i) % kPhasesOfNodes.size()];
    const int victim = static_cast<int>(random_() % 3);
    SCOPED_TRACE(std::string(phase) + ", PE " + std::to_string(victim));
    kill_pe({.victim = victim, .pes = 3, .gba = i % 2 == 0 ? "off" : "fake", .phase = phase, .on_nodes = true});
    if (IsSkipped() || HasFailure()) {
      return;
    }
  }
}

TEST_F(Killed, TheLauncherLeavesNothing) {
  for (int i = 0; i < repeats(20, 200); ++i) {
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(phase);
    end_launcher(SIGKILL, 2 + i % 3, i % 2 == 0 ? "off" : "fake", phase);
  }
}

TEST_F(Killed, TheTerminatedLauncherLeavesNothing) {
  for (int i = 0; i < repeats(5, 100); ++i) {
    const char* phase = kPhases[static_cast<std::size_t>(i) % kPhases.size()];
    SCOPED_TRACE(phase);
    end_launcher(i % 2 == 0 ? SIGTERM : SIGINT, 3, "fake", phase);
  }
}

}  // namespace
