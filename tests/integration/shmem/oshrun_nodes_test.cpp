// SPDX-License-Identifier: Apache-2.0
// oshrun with -H: a program in the place of ssh makes "nodes" of this machine, by SHMEM_HOST_ID.
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/integration/shmem/oshrun_runs.hpp"
#include "tests/support/pe.hpp"

namespace {

using namespace oshrun_test;
using oshrun_test::oshrun;
using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

class OshrunNodes : public ::testing::Test {
 protected:
  OshrunNodes() {
    // As ssh: the command is one line for a shell, which has an environment and a folder of its own.
    std::ofstream(rsh_) << "#!/bin/sh\nhost=$1; shift\n"
                           "case $host in\n"
                           "  down) echo \"rsh: $host is down\" >&2; exit 255 ;;\n"
                           "  empty) exec sh -c 'exec /no/such/oshrun' ;;\n"
                           "  talks) echo \"welcome to $host\" ;;\n"
                           "esac\n"
                           "cd / && exec env -i PATH=/usr/bin:/bin SHMEM_HOST_ID=$host HERE=$host sh -c \"$*\"\n";
    ::chmod(rsh_.c_str(), 0755);
  }

  [[nodiscard]] Words line(const std::string& hosts, const Words& arguments) const {
    Words all{oshrun(), "--rsh", rsh_, "-H", hosts};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  [[nodiscard]] Outcome launch(const std::string& hosts, const Words& arguments, const Words& environment = {}) const {
    return run(line(hosts, arguments), environment, kLimit);
  }

  TempDir dir_;
  const std::string rsh_ = dir_.file("rsh");
};

/// The lines, sorted.
Words sorted_lines(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

TEST_F(OshrunNodes, GivePesTheirNumbersAndTheEnvironment) {
  const auto job = launch("a:2,talks",
                          {"-x", "GIVEN=a b", "sh", "-c",
                           "echo \"$OSHRUN_RANK/$OSHRUN_SIZE $HERE $GIVEN $PASSED $(pwd) $1\"", "sh", "it's $x"},
                          {"PASSED=yes", "GIVEN=no", "SHMEM_HOST_ID=mine", "PWD=/"});
  EXPECT_EQ(job.exit.code, 0) << job.output;
  const std::string folder = std::filesystem::current_path().string();
  EXPECT_THAT(sorted_lines(job.output),
              ElementsAre("0/3 a a b yes " + folder + " it's $x", "1/3 a a b yes " + folder + " it's $x",
                          "2/3 talks a b yes " + folder + " it's $x", "welcome to talks"));
}

TEST_F(OshrunNodes, RunSeveralProgramsInTheirFolders) {
  const auto job = launch("a:2,b:2", {"--tag-output", "-n", "3", "sh", "-c", "echo $HERE", ":", "-n", "1", "-x", "B=2",
                                      "--wdir", dir_.path(), "sh", "-c", "echo $HERE $B $(pwd)"});
  EXPECT_EQ(job.exit.code, 0) << job.output;
  EXPECT_THAT(sorted_lines(job.output), ElementsAre("[0] a", "[1] a", "[2] b", "[3] b 2 " + dir_.path()));
}

TEST_F(OshrunNodes, SynchroniseTheirPes) {
  for (const char* hosts : {"a:2,b:2,c", "a", "localhost:2,b"}) {
    const auto job = launch(hosts, {pe_program(), "barriers", "50"});
    EXPECT_EQ(job.exit.code, 0) << job.output;
    EXPECT_EQ(job.output, "all done\n");
  }
}

TEST_F(OshrunNodes, PassOnWhatPesPrintAlsoIfItIsThrownAway) {
  for (const char* target : {">/dev/null", "2>/dev/null", "2>&1"}) {
    const auto job = run({"sh", "-c", std::string("\"$0\" \"$@\" ") + target, oshrun(), "--rsh", rsh_, "-H", "a,b",
                          "sh", "-c", "echo out; echo error >&2"},
                         {}, kLimit);
    EXPECT_EQ(job.exit.code, 0) << target << job.output;
    const auto count = [&job](const std::string& line) {
      const Words lines = sorted_lines(job.output);
      return std::count(lines.begin(), lines.end(), line);
    };
    EXPECT_EQ(count("out"), std::string(target) == ">/dev/null" ? 0 : 2) << target;
    EXPECT_EQ(count("error"), std::string(target) == "2>/dev/null" ? 0 : 2) << target;
  }
}

TEST_F(OshrunNodes, EndWithTheStatusOfThePeThatFails) {
  const std::string marker = unique("others");
  const auto job =
      launch("a:2,b:2", {"--grace", "0.2", "sh", "-c", "test $OSHRUN_RANK != 3 || exit 7; sleep 100; : $0", marker});
  EXPECT_EQ(job.exit.code, 7) << job.output;
  EXPECT_THAT(job.output, MatchesRegex("oshrun: PE 3 \\(pid [0-9]+\\) on [^ ]+ exited with status 7\n"));
  EXPECT_TRUE(none_matching(marker));
}

TEST_F(OshrunNodes, TellPesOfOneThatWasKilled) {
  const auto job = launch("a:2,b", {pe_program(), "die", "2", "9"});
  EXPECT_EQ(job.exit.code, 128 + SIGKILL) << job.output;
  EXPECT_THAT(job.output, HasSubstr("oshrun: PE 2 (pid "));
  EXPECT_THAT(job.output, HasSubstr("was killed by signal 9"));
}

TEST_F(OshrunNodes, EndWithTheSignalOfTheKilledPeAlsoIfAnotherNodeIsFaster) {
  for (const char* grace : {"60", "0.001"}) {  // it may be dying for longer than the others have to end
    for (const char* status : {"1", "5"}) {
      const auto job = launch("a:2,b", {"--grace", grace, pe_program(), "die_slowly", "2", "9", status});
      EXPECT_EQ(job.exit.code, 128 + SIGKILL) << job.output;
      EXPECT_THAT(job.output, ContainsRegex("oshrun: PE 2 \\(pid [0-9]+\\) on [^ ]+ was killed by signal 9"));
    }
  }
}

/// Those that notice the loss of the other node are counted as well, at most.
TEST_F(OshrunNodes, TellTheCauseOnce) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  for (const auto& [kind, cause] :
       {std::pair{"address", "are not inside the symmetric heap"}, std::pair{"segv", "signal"}}) {
    const auto job = launch("a:8,b:8", {"--grace", "60", test_program("mistake_pes"), kind});
    EXPECT_NE(job.exit.code, 0) << job.output;
    EXPECT_LE(count_of(job.output, "\n"), 5) << job.output;
    EXPECT_EQ(count_of(job.output, cause), 1) << job.output;
    EXPECT_THAT(job.output, HasSubstr("oshrun: PE 8 (pid "));
    EXPECT_THAT(job.output, HasSubstr("oshrun: 7 other PEs "));
  }
}

TEST_F(OshrunNodes, ThatCannotBeReachedAreNamed) {
  const std::string marker = unique("unreachable");
  const auto down = launch("a,down:2", {"--grace", "0.2", "sh", "-c", "sleep 100; : $0", marker});
  EXPECT_EQ(down.exit.code, 1);
  EXPECT_THAT(down.output, AllOf(HasSubstr("rsh: down is down\n"), HasSubstr("oshrun: cannot start down (PEs 1-2): "),
                                 HasSubstr("exited with status 255; does \"" + rsh_ + " down true\" work?")));
  const auto empty = launch("empty,b", {"--grace", "0.2", "sh", "-c", "sleep 100; : $0", marker});
  EXPECT_EQ(empty.exit.code, 127);
  EXPECT_THAT(empty.output, AllOf(HasSubstr("cannot start empty (PE 0)"), HasSubstr("is " + oshrun() + " there?")));
  const auto none = run({oshrun(), "--rsh", "/no/such/ssh", "-H", "a", "true"});
  EXPECT_EQ(none.exit.code, 1);
  EXPECT_THAT(none.output, HasSubstr("--rsh or SHMEM_RSH names another program"));
  EXPECT_TRUE(none_matching(marker));
}

TEST_F(OshrunNodes, SayIfTheyDoNotHaveTheProgram) {
  const auto job = launch("a", {"--grace", "0.2", "/no/such/program"});
  EXPECT_EQ(job.exit.code, 127);
  EXPECT_THAT(job.output, HasSubstr("/no/such/program"));
}

TEST_F(OshrunNodes, EndAfterTheTimeAndNameThePes) {
  const std::string marker = unique("slow");
  const auto times_out = [&](int seconds) {
    return launch("a:2,b", {"--timeout", std::to_string(seconds), "--grace", "0.2", "sh", "-c",
                            "test $OSHRUN_RANK = 0 || exec sleep 100; : $0", marker});
  };
  const auto names_them =
      AllOf(Field(&Outcome::exit, Field(&Exit::code, 124)),
            Field(&Outcome::output,
                  AllOf(HasSubstr("the job did not end within its --timeout; still running on a (PEs 0-1), b (PE 2)"),
                        HasSubstr("still running: PE 1\n"), HasSubstr("still running: PE 2\n"))));
  const auto job = with_timeouts(times_out, Matches(names_them));
  EXPECT_THAT(job, names_them) << job.output;
  EXPECT_TRUE(none_matching(marker));
}

TEST_F(OshrunNodes, EndWithASignalOfTheUser) {
  const std::string marker = unique("interrupted");
  Process job(line("a,b", {"--grace", "0.2", pe_program(), "stay", marker}), {});
  ASSERT_TRUE(job.wait_for_output("staying 0", kLimit) && job.wait_for_output("staying 1", kLimit)) << job.output();
  job.signal(SIGINT);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + SIGINT) << job.output();
  EXPECT_TRUE(none_matching(marker));
}

TEST_F(OshrunNodes, LeaveNothingBehindIfOshrunIsKilled) {
  const std::string marker = unique("orphans");
  Process job(line("a,localhost", {"sh", "-c", "echo here $OSHRUN_RANK; sleep 100; : $0", marker}), {});
  ASSERT_TRUE(job.wait_for_output("here 0", kLimit) && job.wait_for_output("here 1", kLimit)) << job.output();
  job.signal(SIGKILL);
  EXPECT_TRUE(none_matching(marker));
}

TEST_F(OshrunNodes, PassOnSignalsForPrograms) {
  Process job(line("a,b", {"sh", "-c",
                           "trap 'echo got $OSHRUN_RANK; exit 0' USR1; echo here $OSHRUN_RANK; "
                           "while :; do sleep 0.1; done"}),
              {});
  ASSERT_TRUE(job.wait_for_output("here 0", kLimit) && job.wait_for_output("here 1", kLimit)) << job.output();
  job.signal(SIGUSR1);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << job.output();
  EXPECT_THAT(job.output(), AllOf(HasSubstr("got 0"), HasSubstr("got 1")));
}

TEST_F(OshrunNodes, ReportWherePesRun) {
  const auto job = launch("a,b", {"--report-bindings", "--bind", "core", "true"});
  EXPECT_EQ(job.exit.code, 0);
  EXPECT_THAT(job.output, MatchesRegex("(oshrun: PE [01] \\(pid [0-9]+\\) on [^ ]+ is bound to core [0-9]+ \\(CPUs? "
                                       "[-0-9, ]+NUMA node [0-9]+\\)\n){2}"));
}

/// Other users see command lines.
TEST_F(OshrunNodes, KeepSecretsOffCommandLines) {
  const auto job = launch("a", {"-x", "TOKEN=hush", "sh", "-c",
                                "tr '\\0' ' ' </proc/$PPID/cmdline; test -n \"$SHMEM_UID_SECRET\" && echo has one"});
  EXPECT_EQ(job.exit.code, 0) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("--part 0/1"), HasSubstr("has one"), Not(HasSubstr("hush"))));
}

}  // namespace
