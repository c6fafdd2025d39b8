// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "tests/integration/shmem/oshrun_runs.hpp"

namespace {

using namespace oshrun_test;
using oshrun_test::oshrun;
using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

// ---- The environment of PEs

TEST(Oshrun, GivesPesTheirNumbers) {
  const auto outcome = launch({"-n", "3", "sh", "-c", "echo \"[$OSHRUN_RANK/$OSHRUN_SIZE]\""});
  EXPECT_EQ(outcome.exit.code, 0);
  for (const char* pe : {"[0/3]", "[1/3]", "[2/3]"}) {
    EXPECT_THAT(outcome.output, HasSubstr(pe));
  }
}

TEST(Oshrun, RunsOnePeByDefault) {
  EXPECT_EQ(launch({"sh", "-c", "echo $OSHRUN_RANK/$OSHRUN_SIZE"}).output, "0/1\n");
}

TEST(Oshrun, SynchronisesPes) {
  for (const char* pes : {"1", "2", "7", "16"}) {
    const auto outcome = launch({"-np", pes, pe_program(), "barriers", "200"});
    EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
    EXPECT_EQ(outcome.output, "all done\n");
  }
}

TEST(Oshrun, SetsVariables) {
  const auto outcome = launch({"-x", "A=1 2", "-x", "B=", "-x", "OUTER", "sh", "-c", "echo \"$A,$B,$OUTER\""},
                              {"A=overridden", "OUTER=kept"});
  EXPECT_EQ(outcome.output, "1 2,,kept\n");
}

TEST(Oshrun, SelectsTheDevice) {
  const std::vector<std::string> print = {"sh", "-c", "echo \"$GBA_DEVICE,$SHMEM_GBA\""};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), print.begin(), print.end());
    return launch(arguments, {"GBA_DEVICE=/from/environment", "SHMEM_GBA=auto"}).output;
  };
  EXPECT_EQ(with({}), "/from/environment,auto\n");
  EXPECT_EQ(with({"--gba", "off"}), "/from/environment,off\n");
  EXPECT_EQ(with({"--gba", "require"}), "/from/environment,require\n");
  EXPECT_EQ(with({"--gba", "/dev/gba7"}), "/dev/gba7,auto\n");
}

TEST(Oshrun, RunsProgramsThatDoNotUseIt) {
  const auto outcome = launch({"-n", "4", "sh", "-c", "[ $OSHRUN_RANK = 0 ] || sleep 1.5; echo over"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, repeat("over\n", 4));
}

// ---- How jobs end

TEST(Oshrun, GivesTheStatusOfTheFirstPeThatFails) {
  const auto outcome =
      launch({"-n", "3", "--grace", "0.2", "sh", "-c", "[ $OSHRUN_RANK = 2 ] && exit 42; exec sleep 60"});
  EXPECT_EQ(outcome.exit.code, 42);
  EXPECT_THAT(outcome.output, MatchesRegex("oshrun: PE 2 \\(pid [0-9]+\\) on [^ ]+ exited with status 42\n"));
}

TEST(Oshrun, NamesTheSignalThatKilledAPe) {
  const auto outcome = launch({"-n", "3", "--grace", "60", pe_program(), "die", "1", "9"});
  EXPECT_EQ(outcome.exit.code, 137);
  EXPECT_THAT(outcome.output, HasSubstr("oshrun: PE 1 (pid "));
  EXPECT_THAT(outcome.output, HasSubstr("was killed by signal 9 (Killed)\n"));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("shmem: PE 0: the job was ended: PE 1 (pid "),
                                    HasSubstr("shmem: PE 2: the job was ended: PE 1 (pid ")))
      << "the other PEs were told";
}

/// The connections of a killed PE end before its process does, so that its neighbours may be the first to report it.
TEST(Oshrun, NamesTheKilledPeEvenIfItsNeighbourWasFaster) {
  const auto outcome = launch({"-n", "3", "--grace", "60", pe_program(), "die_late", "1", "9"});
  EXPECT_EQ(outcome.exit.code, 137) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("oshrun: PE 1 (pid "), HasSubstr("was killed by signal 9 (Killed)\n")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("ended the job with status")));
}

void expect_name_of_killed_pe(std::vector<std::string> words) {
  words.insert(words.begin(), {"-n", "3", pe_program(), "die_slowly", "1", "9"});
  const auto outcome = launch(words);
  EXPECT_EQ(outcome.exit.code, 137) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("oshrun: PE 1 \\(pid [0-9]+\\) on [^ ]+ was killed by signal 9"));
}

TEST(Oshrun, NamesTheKilledPeEvenIfItsNeighbourExitsFirst) {
  for (const char* status : {"1", "5"}) {
    expect_name_of_killed_pe({status});
  }
}

TEST(Oshrun, NamesTheKilledPeEvenIfItsNeighbourEndsTheJobFirst) {
  for (const char* status : {"1", "5"}) {
    expect_name_of_killed_pe({status, "abort"});
  }
}

TEST(Oshrun, NamesAPeThatHasExitedBeforeAnotherOneReportsIt) {
  const auto outcome = launch({"-n", "3", pe_program(), "exit_unseen", "1", "3"});
  EXPECT_EQ(outcome.exit.code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("oshrun: PE 1 \\(pid [0-9]+\\) on [^ ]+ exited with status 3"));
}

TEST(Oshrun, DoesNotWaitForAnotherCauseOfAnAbort) {
  const auto outcome = launch({"-n", "3", pe_program(), "abort", "2", "1"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("ended the job with status 1: the test wants it"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("exited with status")));
}

/// The shell enters a new control group, runs oshrun there and leaves it again.
constexpr const char* kInASmallControlGroup = R"sh(
  unified="$(sed -n 's/^0:://p' /proc/self/cgroup)"
  old="$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)"
  home="/sys/fs/cgroup/memory$old" limit=memory.limit_in_bytes
  [[ -n "$old" ]] || home="/sys/fs/cgroup$unified" limit=memory.max
  group="${home%/}/$1"
  mkdir "$group" 2>/dev/null || { echo "no control groups"; exit; }
  trap 'echo $$ >"$home/cgroup.procs"; rmdir "$group"' EXIT
  { echo 67108864 >"$group/$limit"; } 2>/dev/null || { echo "no control groups"; exit; }
  echo $$ >"$group/cgroup.procs"
  "$0" -n 2 sh -c '[ $OSHRUN_RANK = 0 ] || exec tail /dev/zero; exec sleep 20' || echo "status $?"
)sh";

TEST(Oshrun, SaysThatAMemoryLimitKilledAPe) {
  const std::string name = unique("gba-memory");
  const auto outcome = oshrun_test::in_shell(kInASmallControlGroup, {name});
  if (outcome.output.find("no control groups") != std::string::npos) {
    GTEST_SKIP() << "no control group with a limit of memory can be made here";
  }
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("oshrun: PE 1 (pid "), HasSubstr("was killed by signal 9 (Killed) by the kernel"),
                    HasSubstr("exceeded the memory limit of control group "), HasSubstr(name + ", 64 MiB\n"),
                    HasSubstr("status 137")));
}

TEST(Oshrun, LeavesNothingOfAJobWhosePeWasKilled) {
  const std::string marker = unique("killed");
  const auto outcome = launch({"-n", "4", pe_program(), "die", "3", "6", marker});
  EXPECT_EQ(outcome.exit.code, 134);
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

TEST(Oshrun, EndsTheJobWhenAPeAbortsIt) {
  const auto outcome = launch({"-n", "4", pe_program(), "abort", "2", "7"});
  EXPECT_EQ(outcome.exit.code, 7);
  EXPECT_THAT(outcome.output, HasSubstr("ended the job with status 7: the test wants it"));
}

TEST(Oshrun, EndsTheJobOnAnAbortWithStatusZero) {
  const auto outcome = launch({"-n", "4", pe_program(), "abort", "2", "0"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_THAT(outcome.output, Not(HasSubstr("oshrun:")));
}

TEST(Oshrun, NoticesAPeThatExitsWithoutLeaving) {
  const auto outcome = launch({"-n", "3", pe_program(), "desert", "1"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("oshrun: PE 1 (pid "), HasSubstr("exited with status 0 without leaving"),
                                    HasSubstr("and PEs 0, 2 are still in it")));
}

TEST(Oshrun, DoesNotEndTheJobIfAPeFailsAfterItHasLeft) {
  const auto outcome = launch({"-n", "3", pe_program(), "late", "0", "9"});
  EXPECT_EQ(outcome.exit.code, 9);
  EXPECT_THAT(outcome.output, HasSubstr("exited with status 9"));
  EXPECT_THAT(outcome.output, HasSubstr("undisturbed\n"));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 3);
}

TEST(Oshrun, KillsPesThatIgnoreSignals) {
  const std::string marker = unique("stubborn");
  const auto times_out = [&](int seconds) {
    return launch({"-n", "2", "--timeout", std::to_string(seconds), "--grace", "0.2", pe_program(), "stay", marker});
  };
  const auto names_them =
      AllOf(Field(&Outcome::exit, Field(&Exit::code, 124)),
            Field(&Outcome::output,
                  HasSubstr("oshrun: the job did not end within its --timeout; still running: PEs 0, 1\n")));
  const auto job = with_timeouts(times_out, Matches(names_them));
  EXPECT_THAT(job, names_them) << job.output;
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

class OshrunSignal : public ::testing::TestWithParam<int> {};

TEST_P(OshrunSignal, EndsTheJob) {
  const std::string marker = unique("signalled");
  Process job({oshrun(), "-n", "3", "--grace", "0.2", pe_program(), "stay", marker});
  ASSERT_TRUE(job.wait_for_output("staying 2", kLimit)) << job.output();
  job.signal(GetParam());
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + GetParam());
  EXPECT_THAT(job.output(), HasSubstr("oshrun: ending the job: signal " + std::to_string(GetParam())));
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Launcher, OshrunSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT));

// Batch systems send them when the time limit is near; the PEs decide what to do.
TEST(Oshrun, ForwardsUserSignalsToItsPes) {
  Process job({oshrun(), "-n", "2", "bash", "-c",
               "trap 'echo first' USR1; trap 'echo second; exit 0' USR2; echo ready; while :; do sleep 0.05; done"});
  ASSERT_TRUE(job.wait_for_output("ready\nready\n", kLimit)) << job.output();
  job.signal(SIGUSR1);
  ASSERT_TRUE(job.wait_for_output("first\nfirst\n", kLimit)) << job.output();
  job.signal(SIGUSR2);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << job.output();
  EXPECT_EQ(job.output(), repeat("ready\n", 2) + repeat("first\n", 2) + repeat("second\n", 2));
}

TEST(Oshrun, IgnoresSignalsThatWereIgnoredAtItsStart) {  // nohup
  Process job({"sh", "-c", "trap '' HUP; exec \"$0\" sh -c 'echo up; sleep 0.5; echo still up'", oshrun()});
  ASSERT_TRUE(job.wait_for_output("up", kLimit));
  job.signal(SIGHUP);
  EXPECT_EQ(job.wait(kLimit)->code, 0);
  EXPECT_THAT(job.output(), HasSubstr("still up"));
}

// ---- Nothing is left behind

TEST(Oshrun, LeavesNoProcessWhenItIsKilled) {
  const std::string marker = unique("orphan");
  // The first is a PE, the second a process that a PE started.
  Process job({oshrun(), "-n", "2", "sh", "-c",
               "sh -c 'echo grandchild; while :; do sleep 0.1; done' " + marker + "; true", marker});
  ASSERT_TRUE(job.wait_for_output("grandchild\ngrandchild", kLimit)) << job.output();
  ASSERT_GE(processes_matching(marker).size(), 5U);
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(kLimit)->signal, SIGKILL);
  EXPECT_TRUE(none_matching(marker));
}

TEST(Oshrun, EndsProcessesThatPesLeaveBehind) {
  const std::string marker = unique("daemon");
  const auto outcome = launch(
      {"-n", "2", "sh", "-c", "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' " + marker + " & sleep 0.3"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_THAT(outcome.output, HasSubstr("processes that PEs had left behind"));
  EXPECT_THAT(processes_matching(marker), IsEmpty());
}

// ---- Errors of the user

TEST(Oshrun, NamesProgramsThatItCannotRun) {
  const auto missing = launch({"-n", "2", "no-such-program"});
  EXPECT_EQ(missing.exit.code, 127);
  EXPECT_EQ(missing.output, "oshrun: cannot run no-such-program: no such program in PATH\n");
  const auto refused = launch({"-n", "2", "/etc/passwd"});
  EXPECT_EQ(refused.exit.code, 126);
  EXPECT_EQ(refused.output, "oshrun: cannot run /etc/passwd: Permission denied\n");
}

TEST(Oshrun, AsksForTheFolderOfAProgramThatIsHere) {
  const TempDir dir;
  const auto outcome = in_shell("cd \"$1\" && echo >hello && chmod +x hello && \"$0\" -n 2 hello", {dir.path()});
  EXPECT_EQ(outcome.output, "oshrun: cannot run hello: no such program in PATH; is ./hello meant?\n");
}

TEST(Oshrun, SaysWhenAnInterpreterIsMissing) {
  const TempDir dir;
  const std::string script = dir.file("script");
  run({"sh", "-c", "printf '#!/no/such/interpreter\\n' > \"$0\"; chmod +x \"$0\"", script});
  const auto outcome = launch({"-n", "3", script});
  EXPECT_EQ(outcome.exit.code, 127);
  EXPECT_EQ(outcome.output, "oshrun: cannot run " + script +
                                ": No such file or directory (the interpreter or loader that it names is missing)\n");
}

TEST(Oshrun, RefusesWrongUsage) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {}, {"-n", "2"}, {"-n", "0", "true"}, {"-n", "-3", "true"}, {"-n", "4097", "true"}, {"--what", "true"}}) {
    const auto outcome = launch(arguments);
    EXPECT_EQ(outcome.exit.code, 2);
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("oshrun: "), HasSubstr("oshrun --help")));
  }
}

TEST(Oshrun, RefusesTwoProcessesForOnePe) {
  const auto outcome = launch({"-n", "1", pe_program(), "nested", pe_program()});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("PE 0 is process "), HasSubstr("unset OSHRUN_JOB_FD")));
}

TEST(Oshrun, CanBeStartedByAPe) {
  const auto outcome = launch({"-n", "2", oshrun(), "-n", "2", pe_program(), "barriers", "10"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, repeat("all done\n", 2));
}

}  // namespace
