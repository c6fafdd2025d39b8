// SPDX-License-Identifier: Apache-2.0
// Jobs that go on when a PE dies: those that are left agree on who they are.
#include <signal.h>

#include <random>

#include "tests/fault/survivors.hpp"

namespace {

using survivors::count_of;
using survivors::expect_agreement;
using survivors::run_clean;
using survivors::run_pes;
using namespace test_support;
using namespace testing;

TEST(Survive, TheRestOfTheWorldIsAFullTeam) {
  const auto job = run_clean(4, "off", {"die", "1"});
  EXPECT_EQ(count_of(job.output, "die: 0,1,2,3 -> 0,2,3, team "), 3) << job.output;
  EXPECT_EQ(count_of(job.output, "failed 1,"), 3) << job.output;
  EXPECT_THAT(job.output, HasSubstr("the others go on without it"));
}

TEST(Survive, EvenlySpacedAndSeveralDead) {
  for (const auto& dead : std::vector<std::vector<std::string>>{{"die", "3"}, {"die", "0"}, {"die", "0", "2", "3"}}) {
    const auto job = run_clean(6, "off", dead);
    EXPECT_EQ(count_of(job.output, " -> "), 7 - static_cast<int>(dead.size())) << job.output;
  }
}

TEST(Survive, BarriersGoThroughANewGroupOfTheDevice) {
  const auto job = run_clean(4, "fake", {"die", "1"}, {"SHMEM_GBA=require"});
  EXPECT_EQ(count_of(job.output, "by gba"), 3) << job.output;
}

TEST(Survive, AllGetTheSameTeamWhenOthersDieMeanwhile) {
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < repeats(4, 300); ++i) {
    // Those who wait notice the first death after half a second, and the new team is ready some milliseconds later.
    const auto micros = [&] { return std::to_string(450'000 + random() % 150'000); };
    const bool device = i % 2 == 1;
    const auto job = run_clean(6, device ? "fake" : "off", {"race", "3:0", "1:" + micros(), "4:" + micros()});
    EXPECT_EQ(count_of(job.output, "end: 0,2,5 -> 0,2,5"), 3) << job.output;
    expect_agreement(job.output);
    if (HasFailure()) {
      break;
    }
  }
}

TEST(Survive, AllGetTheSameTeamWhenTheDeviceIsLostMeanwhile) {
  std::mt19937 random(std::random_device{}());
  const auto wait = [&](unsigned most_ms) {
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (1000UL * most_ms)));
  };
  for (int i = 0; i < repeats(3, 200) && !HasFailure(); ++i) {
    FakeDevice device;
    const std::vector<std::string> command{test_program("shmem_pes"), "survive", "race", "3:0",
                                           "1:" + std::to_string(450'000 + random() % 150'000)};
    Process job(oshrun(5, device.path(), command));
    // Before the first death, in a shrink, or in the barriers of a new group.
    wait(900);
    device.kill();
    wait(50);
    device.start();
    const auto exit = job.wait(survivors::kLimit);
    ASSERT_TRUE(exit) << "still running:\n" << job.output();
    EXPECT_TRUE(exit->clean()) << job.output();
    EXPECT_EQ(count_of(job.output(), "end: 0,2,4 -> 0,2,4"), 3) << job.output();
    expect_agreement(job.output());
  }
}

TEST(Survive, OneThatHangsIsLeftOutAndDoesNotComeBack) {
  for (const char* gba : {"off", "fake"}) {
    survivors::expect_left_out([&](int seconds) {
      return run_pes(4, gba, {"hang", "1"}, survivors::timeout(seconds));
    });
  }
}

TEST(Survive, WaitsForWordsAndLocksNoticeADeadPe) {
  for (const char* victim : {"1", "0"}) {
    const auto job = run_clean(4, "off", {"wait", victim});
    EXPECT_EQ(count_of(job.output, "wait: 0,1,2,3 -> "), 3) << job.output;
  }
}

TEST(Survive, WithoutItTheJobEndsAsBefore) {
  const auto job = run_pes(3, "off", {"rely"});
  EXPECT_EQ(job.exit.code, 128 + SIGKILL) << job.output;
  EXPECT_THAT(job.output, HasSubstr("PE 1 (pid "));
  EXPECT_THAT(job.output, Not(HasSubstr("the barrier returned"))) << job.output;
  EXPECT_THAT(job.output, Not(HasSubstr("go on without it"))) << job.output;
}

TEST(Survive, ErrorsThatReturnAloneDoNotKeepTheJob) {
  // The others print that before they end, which the launcher waits for.
  const auto job = run(oshrun(3, "off", {"--grace", "20", test_program("shmem_pes"), "survive", "return"}));
  EXPECT_EQ(job.exit.code, 128 + SIGKILL) << job.output;
  EXPECT_EQ(count_of(job.output, "the barrier returned"), 2) << job.output;
  EXPECT_THAT(job.output, Not(HasSubstr("go on without it"))) << job.output;
}

}  // namespace
