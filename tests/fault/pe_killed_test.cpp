// SPDX-License-Identifier: Apache-2.0
// A PE dies in a barrier: the job ends, says who it was, and leaves nothing behind.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <random>
#include <thread>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::oshrun;
using test_support::pid_of;
using test_support::Process;
using test_support::processes_matching;
using test_support::repeats;
using test_support::Seconds;
using test_support::test_program;

bool gone(const std::string& marker) {
  for (int i = 0; i < 500; ++i) {
    if (processes_matching(marker).empty()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  return false;
}

/// Rounds that no run reaches, different each time: they also mark the job's processes.
std::string endless(int i) {
  return std::to_string(9'000'000'000'000ULL + static_cast<unsigned long long>(::getpid()) * 10'000 +
                        static_cast<unsigned long long>(i));
}

class PeKilled : public testing::TestWithParam<const char*> {};

TEST_P(PeKilled, TheJobEndsAndNamesIt) {
  std::minstd_rand random(std::random_device{}());
  for (int i = 0; i < repeats(20, 200); ++i) {
    const int pes = 2 + i % 4;
    const int victim = static_cast<int>(random() % static_cast<unsigned>(pes));
    const std::string marker = endless(i);
    Process job(oshrun(pes, GetParam(), {test_program("barrier_pes"), marker}));
    ASSERT_TRUE(job.wait_for_output("PE " + std::to_string(victim) + " pid", Seconds{20})) << job.output();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 50000));
    const pid_t pid = pid_of(job.output(), victim);
    ASSERT_GT(pid, 0) << job.output();
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    const auto exit = job.wait(Seconds{60});
    ASSERT_TRUE(exit) << "still running:\n" << job.output();
    EXPECT_EQ(exit->code, 128 + SIGKILL) << job.output();
    EXPECT_NE(
        job.output().find("PE " + std::to_string(victim) + " (pid " + std::to_string(pid) + ") was killed by signal 9"),
        std::string::npos)
        << job.output();
    EXPECT_TRUE(gone(marker)) << "processes are left";
  }
}

INSTANTIATE_TEST_SUITE_P(Gba, PeKilled, testing::Values("off", "fake"), [](const auto& test) { return test.param; });

class LauncherEnded : public testing::TestWithParam<int> {};

TEST_P(LauncherEnded, NothingIsLeftBehind) {
  for (int i = 0; i < repeats(4, 50); ++i) {
    const std::string marker = endless(1000 + i + 100 * GetParam());
    const auto files_before = std::distance(std::filesystem::directory_iterator("/dev/shm"), {});
    Process job(oshrun(3, "fake", {test_program("barrier_pes"), marker}));
    ASSERT_TRUE(job.wait_for_output("PE 2 pid", Seconds{20})) << job.output();
    const auto device = processes_matching("gba-fake-device");
    job.signal(GetParam());
    const auto exit = job.wait(Seconds{30});
    ASSERT_TRUE(exit) << job.output();
    EXPECT_FALSE(exit->clean());
    if (GetParam() != SIGKILL) {
      EXPECT_EQ(exit->code, 128 + GetParam()) << job.output();
      EXPECT_NE(job.output().find("oshrun: "), std::string::npos) << job.output();
    }
    EXPECT_TRUE(gone(marker)) << "processes are left";
    EXPECT_LE(std::distance(std::filesystem::directory_iterator("/dev/shm"), {}), files_before);
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, LauncherEnded, testing::Values(SIGINT, SIGTERM, SIGKILL),
                         [](const auto& test) { return std::string(sigabbrev_np(test.param)); });

}  // namespace
