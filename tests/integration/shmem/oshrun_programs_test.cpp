// SPDX-License-Identifier: Apache-2.0
// The programs that oshrun starts: their folder, processors and input.
#include <sched.h>

#include <filesystem>

#include "tests/integration/shmem/oshrun_runs.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using namespace oshrun_test;

TEST(OshrunPrograms, ShareOneJob) {
  const auto outcome =
      launch({"-n", "2", pe_program(), "barriers", "50", ":", "-n", "3", pe_program(), "barriers", "50"});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "all done\n");
}

TEST(OshrunPrograms, HaveVariablesAndAFolderOfTheirOwn) {
  const auto outcome = launch({"-n", "2", "-x", "A=first", "sh", "-c", "echo \"$OSHRUN_RANK/$OSHRUN_SIZE $A\"", ":",
                               "--wdir", "/usr/bin", "./env", "sh", "-c", "echo \"$OSHRUN_RANK/$OSHRUN_SIZE $A$PWD\""},
                              {"A="});
  EXPECT_EQ(outcome.exit.code, 0);
  for (const char* line : {"0/3 first\n", "1/3 first\n", "2/3 /usr/bin\n"}) {
    EXPECT_THAT(outcome.output, HasSubstr(line));
  }
}

TEST(OshrunPrograms, AreAllCheckedBeforeAnyIsStarted) {
  const auto outcome = launch({"echo", "started", ":", "no-such-program"});
  EXPECT_EQ(outcome.exit.code, 127);
  EXPECT_EQ(outcome.output, "oshrun: cannot run no-such-program: no such program in PATH\n");
}

TEST(OshrunPrograms, CannotRunInAMissingFolder) {
  const auto outcome = launch({"-n", "2", "--wdir", "/no/such/folder", "true"});
  EXPECT_EQ(outcome.exit.code, 126);
  EXPECT_THAT(outcome.output,
              MatchesRegex("oshrun: cannot run [^ ]*true in /no/such/folder: No such file or directory\n"));
}

TEST(OshrunPrograms, AreReportedByPeWhenOneFails) {
  const auto outcome = launch(
      {"--grace", "0.1", "sleep", "60", ":", "-n", "2", "sh", "-c", "[ $OSHRUN_RANK = 1 ] || exec sleep 60; exit 5"});
  EXPECT_EQ(outcome.exit.code, 5);
  EXPECT_THAT(outcome.output, MatchesRegex("oshrun: PE 1 \\(pid [0-9]+\\) on [^ ]+ exited with status 5\n"));
}

// ---- Input

TEST(OshrunInput, FromAPipeGoesToPeZeroOnly) {
  const auto outcome = in_shell("head -c 1000000 /dev/zero | \"$0\" -n 3 sh -c 'echo $OSHRUN_RANK:$(wc -c)'");
  EXPECT_EQ(outcome.exit.code, 0);
  for (const char* line : {"0:1000000\n", "1:0\n", "2:0\n"}) {
    EXPECT_THAT(outcome.output, HasSubstr(line));
  }
}

TEST(OshrunInput, FromAFileGoesToPeZeroOnly) {
  const TempDir dir;
  const auto outcome = in_shell(
      "head -c 1000 /dev/zero > \"$1\"; \"$0\" -n 2 sh -c 'echo $OSHRUN_RANK:$(wc -c)' : sh -c 'echo :$(wc -c)' < "
      "\"$1\"",
      {dir.file("input")});
  EXPECT_EQ(outcome.exit.code, 0);
  for (const char* line : {"0:1000\n", "1:0\n", ":0\n"}) {
    EXPECT_THAT(outcome.output, HasSubstr(line));
  }
}

TEST(OshrunInput, MayBeClosed) {
  const auto outcome = in_shell("\"$0\" -n 2 sh -c 'echo $OSHRUN_RANK:$(wc -c)' <&-");
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("0:0\n"), HasSubstr("1:0\n")));
}

// ---- Processors

int first_allowed_cpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
    ++cpu;
  }
  return cpu;
}

TEST(OshrunBinding, KeepsEachPeOnAnAllowedCore) {
  const std::string cpu = std::to_string(first_allowed_cpu());
  const auto outcome = in_shell("taskset -c " + cpu +
                                " \"$0\" -n 3 --bind core --report-bindings grep Cpus_allowed_list /proc/self/status");
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_EQ(run({"sh", "-c", "printf %s \"$0\" | grep -c \"list:.$1\\$\"", outcome.output, cpu}).output, "3\n")
      << outcome.output;
  for (const char* pe : {"0", "1", "2"}) {
    EXPECT_THAT(outcome.output, ::testing::ContainsRegex("oshrun: PE " + std::string(pe) +
                                                         " \\(pid [0-9]+\\) on [^ ]+ is bound to core 0 \\(CPU " + cpu +
                                                         ", NUMA node [0-9]+\\)"));
  }
}

TEST(OshrunBinding, IsOffByDefault) {
  const auto outcome = launch({"-n", "2", "--report-bindings", "true"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_THAT(
      outcome.output,
      MatchesRegex(
          "(oshrun: PE [01] \\(pid [0-9]+\\) on [^ ]+ is not bound \\(CPUs? [-0-9, ]+NUMA nodes? [-0-9, ]+\\)\n){2}"));
}

TEST(OshrunBinding, KeepsPesOnANode) {
  const auto outcome = launch({"-n", "2", "--bind", "numa", "--report-bindings", "true"});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_THAT(
      outcome.output,
      MatchesRegex(
          "(oshrun: PE [01] \\(pid [0-9]+\\) on [^ ]+ is bound to NUMA node [0-9]+ \\(CPUs? [-0-9, ]+\\)\n){2}"));
}

// ---- The time that PEs get to end

TEST(OshrunGrace, IsGivenBeforeTheFirstSignal) {
  const auto outcome = launch({"-n", "2", "--grace", "20", "sh", "-c",
                               "[ $OSHRUN_RANK = 0 ] && exit 3; trap 'echo asked' TERM; sleep 1.5; echo done"});
  EXPECT_EQ(outcome.exit.code, 3);
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("done\n"), Not(HasSubstr("asked"))));
}

TEST(OshrunGrace, MayBeZero) {
  const std::string marker = oshrun_test::unique("no-grace");
  const auto outcome = launch({"-n", "2", "--grace", "0", "sh", "-c",
                               "[ $OSHRUN_RANK = 0 ] && exit 3; trap '' TERM; while :; do sleep 1; done", marker});
  EXPECT_EQ(outcome.exit.code, 3);
  EXPECT_THAT(processes_matching(marker), ::testing::IsEmpty());
}

}  // namespace
