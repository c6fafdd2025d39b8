// SPDX-License-Identifier: Apache-2.0
// Barriers of real PEs, through a fake device and without one.
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::FakeDevice;
using test_support::oshrun;
using test_support::program;
using test_support::repeats;
using test_support::run;
using test_support::Seconds;
using test_support::sum_of;
using test_support::test_program;

struct Case {
  int pes;
  const char* gba;
  int rounds;
};

class Barriers : public testing::TestWithParam<Case> {};

TEST_P(Barriers, AllEndAndNoneEarly) {
  const auto [pes, gba, rounds] = GetParam();
  const auto job = run(oshrun(pes, gba, {test_program("barrier_pes"), std::to_string(rounds)}), {}, Seconds{240});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  const auto total = static_cast<unsigned long long>(pes) * static_cast<unsigned long long>(rounds);
  const bool by_device = std::string(gba) == "fake" && pes > 1;
  // Barriers of the heap calls count too.
  EXPECT_GE(sum_of(job.output, by_device ? "by device" : "by software"), pes > 1 ? total : 0) << job.output;
  EXPECT_EQ(sum_of(job.output, by_device ? "by software" : "by device"), 0U) << job.output;
}

INSTANTIATE_TEST_SUITE_P(Jobs, Barriers,
                         testing::Values(Case{1, "off", 1000}, Case{1, "fake", 1000},
                                         Case{2, "off", repeats(100000, 100000)},
                                         Case{2, "fake", repeats(100000, 100000)}, Case{3, "fake", 20000},
                                         Case{4, "off", repeats(100000, 100000)},
                                         Case{4, "fake", repeats(50000, 100000)}, Case{8, "off", 1000},
                                         Case{8, "fake", 1000}, Case{17, "off", 1000}, Case{17, "fake", 1000}),
                         [](const auto& test) { return std::to_string(test.param.pes) + "_" + test.param.gba; });

TEST(Job, WithoutALauncherIsOnePe) {
  const auto job = run({test_program("barrier_pes"), "100"}, {"GBA_DEVICE=/nonexistent"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_NE(job.output.find("PE 0: central_counter"), std::string::npos) << job.output;
}

TEST(Job, ReportsOnceThatTheNamedDeviceCannotBeUsed) {
  const std::string text = "shmem: PE 0: barriers are made in software, because the device cannot be used: ";
  const auto named = run(oshrun(2, "vfio-user:/nonexistent", {test_program("barrier_pes"), "10"}));
  EXPECT_TRUE(named.exit.clean()) << named.output;
  EXPECT_NE(named.output.find(text), std::string::npos) << named.output;
  EXPECT_NE(named.output.find("/nonexistent"), std::string::npos) << named.output;
  EXPECT_EQ(named.output.find(text), named.output.rfind(text)) << "by one PE";
  const auto flags = run(oshrun(2, "", {test_program("barrier_pes"), "10"}), {"GBA_FLAGS=foo"});
  EXPECT_TRUE(flags.exit.clean()) << flags.output;
  EXPECT_NE(flags.output.find(text + "gba: GBA_FLAGS is \"foo\""), std::string::npos) << flags.output;
  const auto off = run(oshrun(2, "off", {test_program("barrier_pes"), "10"}), {"GBA_FLAGS=foo"});
  EXPECT_EQ(off.output.find("cannot be used"), std::string::npos) << off.output;
}

TEST(Job, EndsWithTheReasonIfARequiredGbaIsMissing) {
  const auto job = run(oshrun(2, "", {test_program("barrier_pes"), "10"}),
                       {"SHMEM_GBA=require", "GBA_DEVICE=vfio-user:/nonexistent"});
  EXPECT_EQ(job.exit.code, 1) << job.output;
  EXPECT_NE(job.output.find("SHMEM_GBA=require"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("/nonexistent"), std::string::npos) << job.output;
}

TEST(Job, SharesThePortsOfADeviceWithTooFew) {
  FakeDevice device({"--ports", "2"});
  const auto job = run(oshrun(3, device.path(), {test_program("barrier_pes"), "500"}), {"SHMEM_INFO=1"}, Seconds{60});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_GE(sum_of(job.output, "by device"), 1500U) << job.output;
  EXPECT_EQ(sum_of(job.output, "by software"), 0U) << job.output;
}

TEST(Job, EightPesPassTheTestsThroughTwoPortsAndOne) {
  for (const char* ports : {"8", "2", "1"}) {
    for (const char* pes : {"barrier_pes", "api_pes", "whole_life_pes"}) {
      SCOPED_TRACE(std::string(pes) + " --ports " + ports);
      const auto job = run({program("oshrun"), "-n", "8", "--gba", "fake", "--ports", ports, test_program(pes)},
                           {"SHMEM_GBA=require"}, Seconds{100});
      EXPECT_TRUE(job.exit.clean()) << job.output;
      EXPECT_EQ(sum_of(job.output, "by software"), 0U) << job.output;
    }
  }
}

/// Kills the victim after all PEs have run barriers.
void kill_pe(int victim, const char* ports) {
  test_support::Process job(
      {program("oshrun"), "-n", "8", "--gba", "fake", "--ports", ports, test_program("barrier_pes"), "100000000"});
  for (int pe = 0; pe < 8; ++pe) {
    ASSERT_TRUE(job.wait_for_output("PE " + std::to_string(pe) + " pid", Seconds{60})) << job.output();
  }
  const pid_t pid = test_support::pid_of(job.output(), victim);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto exit = job.wait(Seconds{60});
  ASSERT_TRUE(exit) << "still running:\n" << job.output();
  EXPECT_EQ(exit->code, 128 + SIGKILL) << job.output();
  EXPECT_NE(job.output().find("PE " + std::to_string(victim) + " (pid " + std::to_string(pid) + ")"), std::string::npos)
      << job.output();
}

TEST(Job, EndsWithTheNameOfTheOpenerOfASharedPortThatWasKilled) {
  kill_pe(1, "2");
  kill_pe(0, "2");
  kill_pe(5, "2");  // shares PE 1's
}

TEST(Job, RefusesMalformedEnvironmentValues) {
  for (const char* variable : {"SHMEM_SYMMETRIC_SIZE=-1", "SHMEM_SYMMETRIC_SIZE=lots", "SHMEM_GBA=maybe",
                               "SHMEM_BARRIER_ALGORITHM=quick", "SHMEM_BOOTSTRAP=telepathy"}) {
    const auto job = run(oshrun(2, "off", {test_program("barrier_pes"), "10"}), {variable});
    if (std::string(variable).rfind("SHMEM_GBA", 0) == 0) {
      continue;  // --gba off overrides that one
    }
    EXPECT_NE(job.exit.code, 0) << variable;
    EXPECT_NE(job.output.find(variable), std::string::npos) << job.output;
  }
}

TEST(Job, ChoosesByTheTableThatItIsGiven) {
  const test_support::TempDir folder;
  const std::string file = folder.file("table");
  const auto job_with = [&](const char* rows) {
    std::ofstream(file) << "libshmem-barrier-tuning 1\n" << rows;
    return run(oshrun(3, "off", {test_program("barrier_pes"), "50"}), {"SHMEM_INFO=1", "SHMEM_BARRIER_TUNING=" + file});
  };
  const auto job = job_with("alone 3 tournament\nalone * basic\noversubscribed 3 tournament\noversubscribed * basic\n");
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_NE(job.output.find("PE 2: tournament, early 0"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("3 PEs in all on"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("of " + file), std::string::npos) << job.output;
  const auto malformed = job_with("alone * tournaments\n");
  EXPECT_NE(malformed.exit.code, 0) << malformed.output;
  EXPECT_NE(malformed.output.find(file + ", line 2: \"tournaments\""), std::string::npos) << malformed.output;
}

TEST(Job, RefusesAHeapThatTheMachineCannotHold) {
  const auto job = run(oshrun(2, "off", {test_program("barrier_pes"), "10"}), {"SHMEM_SYMMETRIC_SIZE=1000t"});
  EXPECT_NE(job.exit.code, 0);
  EXPECT_NE(job.output.find("SHMEM_SYMMETRIC_SIZE"), std::string::npos) << job.output;
}

TEST(Barrier, TimesOutWithTheNameOfThePeThatDoesNotCome) {
  const auto job = run(oshrun(2, "fake",
                              {"bash", "-c",
                               "if [ $OSHRUN_RANK = 1 ]; then exec " + test_program("late_pe") + "; else exec " +
                                   test_program("barrier_pes") + " 5; fi"}),
                       {"SHMEM_BARRIER_TIMEOUT=2"}, Seconds{60});
  EXPECT_NE(job.exit.code, 0);
  EXPECT_NE(job.output.find("timed out"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("waited for PE 1"), std::string::npos) << job.output;
}

}  // namespace
