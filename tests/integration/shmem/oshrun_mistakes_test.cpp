// SPDX-License-Identifier: Apache-2.0
// What the user of a job reads when one PE makes a mistake: the cause once, at the end.
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

int lines_of(const std::string& text) {
  return count_of(text, "\n");
}

/// "mistake_pes.c:N" of the line with this mark.
std::string line_with(const std::string& mark) {
  std::ifstream source(MISTAKE_SOURCE);
  int number = 1;
  for (std::string line; std::getline(source, line); ++number) {
    if (line.find("line: " + mark) != std::string::npos) {
      return "mistake_pes.c:" + std::to_string(number);
    }
  }
  return "no line " + mark;
}

bool has_addr2line() {
  return run({"sh", "-c", "command -v addr2line"}).exit.clean();
}

Outcome mistake(const std::string& kind, int pes = 16, const Words& environment = {}) {
  // The others have time to say what they have waited for.
  return run({program("oshrun"), "-n", std::to_string(pes), "--gba", "off", "--grace", "60",
              test_program("mistake_pes"), kind},
             environment);
}

constexpr const char* kOthers = "\noshrun: 15 other PEs waited in barrier [0-9]+ of team 0\n$";

TEST(OnePesMistake, IsToldOnce) {
  const auto job = mistake("address");
  EXPECT_EQ(job.exit.code, 1);
  EXPECT_LE(lines_of(job.output), 5) << job.output;
  EXPECT_EQ(count_of(job.output, "are not inside the symmetric heap"), 1) << job.output;
  EXPECT_THAT(job.output, ContainsRegex("^oshrun: PE 8 \\(pid [0-9]+\\) on [^ ]+ ended the job with status 1: "
                                        "shmem: PE 8: shmem_long_put: "));
  EXPECT_THAT(job.output, ContainsRegex(kOthers));
  if (has_addr2line()) {
    EXPECT_THAT(job.output, HasSubstr("oshrun: PE 8 was in make_mistake (" + line_with("address") + "), main ("));
  }
}

// Barriers by which few PEs find the fastest algorithm at start are not the program's.
TEST(OnePesMistake, NumbersTheBarriersOfTheProgram) {
  const auto job = mistake("address", 2);
  EXPECT_THAT(job.output, ContainsRegex("\noshrun: 1 other PE waited in barrier [1-9] of team 0\n$"));
}

TEST(OnePesMistake, NamesTheSignalAndTheLine) {
  for (const auto& [kind, signal, text] :
       {std::tuple{"segv", SIGSEGV, "killed by signal 11 \\(Segmentation fault\\) at address 0x8\n"},
        std::tuple{"abort", SIGABRT, "killed by signal 6 \\(Aborted\\)\n"}}) {
    const auto job = mistake(kind);
    EXPECT_EQ(job.exit.code, 128 + signal);
    EXPECT_LE(lines_of(job.output), 5) << job.output;
    EXPECT_THAT(job.output, ContainsRegex(std::string("^oshrun: PE 8 \\(pid [0-9]+\\) on [^ ]+ was ") + text)) << kind;
    EXPECT_EQ(count_of(job.output, "signal"), 1) << job.output;
    EXPECT_THAT(job.output, ContainsRegex(kOthers));
    if (has_addr2line()) {
      EXPECT_THAT(job.output, HasSubstr("oshrun: PE 8 was in make_mistake (" + line_with(kind) + "), main ("));
    }
  }
}

TEST(OnePesMistake, IsToldOnceIfAllMakeIt) {
  const auto job = mistake("all");
  EXPECT_EQ(job.exit.code, 1);
  EXPECT_LE(lines_of(job.output), 5) << job.output;
  EXPECT_EQ(count_of(job.output, "are not inside the symmetric heap"), 1) << job.output;
  EXPECT_THAT(job.output, ContainsRegex("\noshrun: [0-9]+ other PEs failed, too, with the same message\n"));
}

TEST(OnePesMistake, IsToldOnceIfTheOthersGetErrors) {
  const auto job = mistake("sum");
  EXPECT_EQ(job.exit.code, 3);
  EXPECT_THAT(job.output, MatchesRegex("oshrun: PE 8 \\(pid [0-9]+\\) on [^ ]+ exited with status 3\n"
                                       "oshrun: 15 other PEs waited in collective call [0-9]+ of team 0\n"));
}

TEST(OnePesMistake, IsToldAlsoWithoutAStack) {
  const auto call = mistake("null", 4);
  EXPECT_EQ(call.exit.code, 128 + SIGSEGV);
  EXPECT_THAT(call.output, HasSubstr("was killed by signal 11 (Segmentation fault)"));
  if (has_addr2line()) {
    EXPECT_THAT(call.output, HasSubstr("oshrun: PE 2 was in make_mistake (" + line_with("null") + ")\n"));
  }
  const auto stack = mistake("stack", 4);
  EXPECT_EQ(stack.exit.code, 128 + SIGSEGV);
  EXPECT_THAT(stack.output, HasSubstr("was killed by signal 11 (Segmentation fault) at address"));
  if (has_addr2line()) {
    EXPECT_THAT(stack.output, HasSubstr("oshrun: PE 2 was in make_mistake (mistake_pes.c:"));
  }
}

TEST(OnePesMistake, HasNoBacktraceWithoutTheVariable) {
  for (const char* kind : {"address", "segv"}) {
    const auto job = mistake(kind, 4, {"SHMEM_BACKTRACE=0"});
    EXPECT_THAT(job.output, Not(HasSubstr("mistake_pes.c"))) << kind;
    EXPECT_EQ(lines_of(job.output), 2) << job.output;
  }
}

TEST(OnePesMistake, LeavesHandlersOfTheProgramAlone) {
  const auto job = mistake("own", 4);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(job.output, "");
}

TEST(OnePesMistake, IsNotThatOfAForkedChild) {
  const auto job = mistake("fork", 4);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(job.output, "");
}

TEST(OnePesMistake, MayBeAnExit) {
  const auto job = mistake("exit");
  EXPECT_EQ(job.exit.code, 3);
  EXPECT_EQ(lines_of(job.output), 2) << job.output;
  EXPECT_THAT(job.output, ContainsRegex("^oshrun: PE 8 \\(pid [0-9]+\\) on [^ ]+ exited with status 3\n"));
  EXPECT_THAT(job.output, ContainsRegex(kOthers));
}

TEST(OnePesMistake, IsPrintedByItWithoutALauncher) {
  const auto outcome = run({test_program("mistake_pes"), "segv"});
  EXPECT_EQ(outcome.exit.signal, SIGSEGV);
  EXPECT_EQ(lines_of(outcome.output), 1) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("^shmem: PE 0 \\(pid [0-9]+ on [^ ]+\\) got signal 11 at address 0x8; "
                                            "addr2line -Cfe [^ ]*/mistake_pes 0x[0-9a-f]+ names the line\n"));
}

TEST(OnePesMistake, StillWritesACore) {
  std::ifstream pattern("/proc/sys/kernel/core_pattern");
  std::string text;
  std::getline(pattern, text);
  if (text.empty() || text.front() == '|' || text.front() == '/') {
    GTEST_SKIP() << "cores are not written to the working folder: " << text;
  }
  const TempDir dir;
  const auto job = run({"sh", "-c", "cd \"$0\" && ulimit -c unlimited && exec \"$@\"", dir.path(), program("oshrun"),
                        "-n", "2", test_program("mistake_pes"), "segv"});
  EXPECT_FALSE(std::filesystem::is_empty(dir.path())) << job.output;
}

}  // namespace
