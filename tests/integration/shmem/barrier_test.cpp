// SPDX-License-Identifier: Apache-2.0
// Barriers of real PEs, through a fake device and without one.
#include <signal.h>

#include <fstream>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

struct Case {
  int pes;
  const char* gba;
  int rounds;
};

class Barriers : public testing::TestWithParam<Case> {};

TEST_P(Barriers, AllEndAndNoneEarly) {
  const auto [pes, gba, rounds] = GetParam();
  const auto job = run_pes(pes, gba, {"barrier_pes", std::to_string(rounds)}, {}, Seconds{1200});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  const auto total = static_cast<unsigned long long>(pes) * static_cast<unsigned long long>(rounds);
  const bool by_device = std::string(gba) == "fake" && pes > 1;
  // Barriers of the heap calls count too.
  EXPECT_GE(sum_of(job.output, by_device ? "by device" : "by software"), pes > 1 ? total : 0) << job.output;
  EXPECT_EQ(sum_of(job.output, by_device ? "by software" : "by device"), 0U) << job.output;
}

INSTANTIATE_TEST_SUITE_P(Jobs, Barriers,
                         Values(Case{1, "off", 1000}, Case{1, "fake", 1000}, Case{2, "off", repeats(100000, 100000)},
                                Case{2, "fake", repeats(100000, 100000)}, Case{3, "fake", 20000},
                                Case{4, "off", repeats(100000, 100000)}, Case{4, "fake", repeats(50000, 100000)},
                                Case{8, "off", 1000}, Case{8, "fake", 1000}, Case{17, "off", 1000},
                                Case{17, "fake", 1000}),
                         [](const auto& test) { return std::to_string(test.param.pes) + "_" + test.param.gba; });

TEST(Job, WithoutALauncherIsOnePe) {
  const auto job = run({test_program("barrier_pes"), "100"}, {"GBA_DEVICE=/nonexistent"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("PE 0: central_counter"));
}

TEST(Job, ReportsOnceThatTheNamedDeviceCannotBeUsed) {
  const std::string text = "shmem: PE 0: barriers are made in software, because the device cannot be used: ";
  const auto named = run_clean(2, "vfio-user:/nonexistent", {"barrier_pes", "10"});
  EXPECT_THAT(named.output, HasSubstr(text));
  EXPECT_THAT(named.output, HasSubstr("/nonexistent"));
  EXPECT_EQ(named.output.find(text), named.output.rfind(text)) << "by one PE";
  const auto flags = run_clean(2, "", {"barrier_pes", "10"}, {"GBA_FLAGS=foo"});
  EXPECT_THAT(flags.output, HasSubstr(text + "gba: GBA_FLAGS is \"foo\""));
  const auto off = run_pes(2, "off", {"barrier_pes", "10"}, {"GBA_FLAGS=foo"});
  EXPECT_THAT(off.output, Not(HasSubstr("cannot be used")));
}

TEST(Job, EndsWithTheReasonIfARequiredGbaIsMissing) {
  const auto job = run_pes(2, "", {"barrier_pes", "10"}, {"SHMEM_GBA=require", "GBA_DEVICE=vfio-user:/nonexistent"});
  EXPECT_EQ(job.exit.code, 1) << job.output;
  EXPECT_THAT(job.output, HasSubstr("SHMEM_GBA=require"));
  EXPECT_THAT(job.output, HasSubstr("/nonexistent"));
}

TEST(Job, SharesThePortsOfADeviceWithTooFew) {
  FakeDevice device({"--ports", "2"});
  const auto job = run_pes(3, device.path(), {"barrier_pes", "500"}, {"SHMEM_INFO=1"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_GE(sum_of(job.output, "by device"), 1500U) << job.output;
  EXPECT_EQ(sum_of(job.output, "by software"), 0U) << job.output;
}

TEST(Job, EightPesPassTheTestsThroughTwoPortsAndOne) {
  for (const char* ports : {"8", "2", "1"}) {
    for (const Words& pes : {Words{"barrier_pes"}, {"shmem_pes", "api"}, {"shmem_pes", "whole_life"}}) {
      SCOPED_TRACE(pes.back() + " --ports " + ports);
      Words command{program("oshrun"), "-n", "8", "--gba", "fake", "--ports", ports, test_program(pes[0])};
      command.insert(command.end(), pes.begin() + 1, pes.end());
      const auto job = run(command, {"SHMEM_GBA=require"});
      EXPECT_TRUE(job.exit.clean()) << job.output;
      EXPECT_EQ(sum_of(job.output, "by software"), 0U) << job.output;
    }
  }
}

/// Kills the victim after all PEs have run barriers.
void kill_pe(int victim, const char* ports) {
  Process job(
      {program("oshrun"), "-n", "8", "--gba", "fake", "--ports", ports, test_program("barrier_pes"), "100000000"});
  for (int pe = 0; pe < 8; ++pe) {
    ASSERT_TRUE(job.wait_for_output("PE " + std::to_string(pe) + " pid", Seconds{120})) << job.output();
  }
  const pid_t pid = pid_of(job.output(), victim);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto exit = job.wait(Seconds{120});
  ASSERT_TRUE(exit) << "still running:\n" << job.output();
  EXPECT_EQ(exit->code, 128 + SIGKILL) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("PE " + std::to_string(victim) + " (pid " + std::to_string(pid) + ")"));
}

TEST(Job, EndsWithTheNameOfTheOpenerOfASharedPortThatWasKilled) {
  kill_pe(1, "2");
  kill_pe(0, "2");
  kill_pe(5, "2");  // shares PE 1's
}

TEST(Job, RefusesMalformedEnvironmentValues) {
  for (const char* variable : {"SHMEM_SYMMETRIC_SIZE=-1", "SHMEM_SYMMETRIC_SIZE=lots", "SHMEM_GBA=maybe",
                               "SHMEM_BARRIER_ALGORITHM=quick", "SHMEM_BOOTSTRAP=telepathy"}) {
    const auto job = run_pes(2, "off", {"barrier_pes", "10"}, {variable});
    if (std::string(variable).rfind("SHMEM_GBA", 0) == 0) {
      continue;  // --gba off overrides that one
    }
    EXPECT_NE(job.exit.code, 0) << variable;
    EXPECT_THAT(job.output, HasSubstr(variable));
  }
}

TEST(Job, ChoosesByTheTableThatItIsGiven) {
  const TempDir folder;
  const std::string file = folder.file("table");
  const auto job_with = [&](const char* rows) {
    std::ofstream(file) << "libshmem-barrier-tuning 1\n" << rows;
    return run_pes(3, "off", {"barrier_pes", "50"}, {"SHMEM_INFO=1", "SHMEM_BARRIER_TUNING=" + file});
  };
  const auto job = job_with("alone 3 tournament\nalone * basic\noversubscribed 3 tournament\noversubscribed * basic\n");
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("PE 2: tournament, early 0"));
  EXPECT_THAT(job.output, HasSubstr("3 PEs in all on"));
  EXPECT_THAT(job.output, HasSubstr("of " + file));
  const auto malformed = job_with("alone * tournaments\n");
  EXPECT_NE(malformed.exit.code, 0) << malformed.output;
  EXPECT_THAT(malformed.output, HasSubstr(file + ", line 2: \"tournaments\""));
}

TEST(Job, RefusesAHeapThatTheMachineCannotHold) {
  const auto job = run_pes(2, "off", {"barrier_pes", "10"}, {"SHMEM_SYMMETRIC_SIZE=1000t"});
  EXPECT_NE(job.exit.code, 0);
  EXPECT_THAT(job.output, HasSubstr("SHMEM_SYMMETRIC_SIZE"));
}

TEST(Barrier, TimesOutWithTheNameOfThePeThatDoesNotCome) {
  const auto times_out = [](int seconds) {
    return run(oshrun(2, "fake",
                      {"bash", "-c",
                       "if [ $OSHRUN_RANK = 1 ]; then exec " + test_program("shmem_pes") + " late; else exec " +
                           test_program("barrier_pes") + " 5; fi"}),
               {"SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)});
  };
  const auto names_it = AllOf(Field(&Outcome::exit, Field(&Exit::code, Ne(0))),
                              Field(&Outcome::output, AllOf(HasSubstr("timed out"), HasSubstr("waited for PE 1"))));
  const auto job = with_timeouts(times_out, Matches(names_it));
  EXPECT_THAT(job, names_it) << job.output;
}

/// In a mount namespace with another /dev, which has a file that looks like a device.
TEST(Job, WarnsOnceOfADeviceThatIsThereAndCannotBeUsed) {
  const std::string script = R"sh(
    unshare --mount sh -c 'mount -t tmpfs none /mnt && for file in null urandom; do : >/mnt/$file &&
      mount --bind /dev/$file /mnt/$file; done && : >/mnt/gba0 && mount --move /mnt /dev && echo ready &&
      exec "$@"' sh "$@")sh";
  Words command{"sh", "-c", script, "sh"};
  const auto job = [&](const Words& environment) {
    Words all = command;
    for (const std::string& word : oshrun(3, "", {test_program("barrier_pes"), "10"})) {
      all.push_back(word);
    }
    return run(all, environment);
  };
  const auto warned = job({"GBA_DEVICE="});
  if (warned.output.find("ready") == std::string::npos) {
    GTEST_SKIP() << "no /dev of its own can be made here: " << warned.output;
  }
  EXPECT_EQ(warned.exit.code, 0) << warned.output;
  EXPECT_EQ(count_of(warned.output, "because the GBA of this node cannot be used: "), 1) << warned.output;
  EXPECT_EQ(count_of(job({"GBA_DEVICE=", "SHMEM_GBA=off"}).output, "cannot be used"), 0);
}

}  // namespace
