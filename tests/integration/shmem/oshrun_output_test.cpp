// SPDX-License-Identifier: Apache-2.0
// How oshrun forwards the output of PEs.
#include <sstream>

#include "tests/integration/shmem/oshrun_runs.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using namespace oshrun_test;

/// Prints each line in two writes, and starts a program between them so that other PEs write meanwhile.
constexpr const char* kHalfLines =
    "for i in $(seq 40); do printf \"$OSHRUN_RANK=\"; /bin/true; printf \"%s.\n\" $OSHRUN_RANK; done";

/// Counts the lines; each must match `pattern`.
int lines_like(const std::string& text, const std::string& pattern) {
  std::istringstream stream(text);
  std::string line;
  int count = 0;
  while (std::getline(stream, line)) {
    EXPECT_TRUE(matches(line, pattern)) << line;
    ++count;
  }
  return count;
}

TEST(OshrunOutput, KeepsLinesWhole) {
  const auto outcome = launch({"-n", "8", "sh", "-c", kHalfLines});
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(lines_like(outcome.output, "([0-7])=\\1\\."), 8 * 40);
}

TEST(OshrunOutput, KeepsLinesOfStandardErrorWhole) {
  const auto outcome = in_shell("\"$0\" -n 4 sh -c \"($1) >&2\" 2>&1 >/dev/null", {kHalfLines});
  EXPECT_EQ(lines_like(outcome.output, "([0-7])=\\1\\."), 4 * 40);
}

TEST(OshrunOutput, KeepsTheTwoStreamsApart) {
  const std::string command = "\"$0\" -n 2 sh -c 'echo out; echo err >&2' ";
  EXPECT_EQ(in_shell(command + "2>/dev/null").output, "out\nout\n");
  EXPECT_EQ(in_shell(command + "2>&1 >/dev/null").output, "err\nerr\n");
  EXPECT_EQ(in_shell("(" + command + "3>&1 >&2 2>&3 3>&- | tr e E) 2>/dev/null").output, "Err\nErr\n");
}

TEST(OshrunOutput, KeepsThePesOrderIfBothStreamsAreOne) {
  const auto outcome =
      launch({"-n", "2", "--tag-output", "sh", "-c", "for i in 1 2 3; do echo o$i; echo e$i >&2; done"});
  for (const char* pe : {"[0] ", "[1] "}) {
    std::string theirs;
    std::istringstream stream(outcome.output);
    for (std::string line; std::getline(stream, line);) {
      if (line.rfind(pe, 0) == 0) {
        theirs += line.substr(4) + " ";
      }
    }
    EXPECT_EQ(theirs, "o1 e1 o2 e2 o3 e3 ");
  }
}

TEST(OshrunOutput, BeginsLinesWithTags) {
  const auto outcome = launch({"-n", "3", "--tag-output", "sh", "-c", kHalfLines});
  EXPECT_EQ(lines_like(outcome.output, "\\[([0-2])\\] \\1=\\1\\."), 3 * 40);
  EXPECT_EQ(launch({"--tag-output", "echo", "alone"}).output, "[0] alone\n");
  EXPECT_EQ(launch({"--tag-output", "printf", "unfinished"}).output, "[0] unfinished");
}

TEST(OshrunOutput, ForwardsBytesUnchanged) {
  const TempDir dir;
  const auto outcome = in_shell(
      "head -c 3000000 /dev/urandom > \"$1\"; \"$0\" -n 2 sh -c '[ $OSHRUN_RANK != 0 ] || cat \"$0\"' \"$1\" | cmp - "
      "\"$1\" "
      "&& echo same",
      {dir.file("bytes")});
  EXPECT_EQ(outcome.output, "same\n");
}

TEST(OshrunOutput, ComesBeforeTheMessageAboutItsPe) {
  for (int i = 0; i < 5; ++i) {
    const auto outcome = launch(
        {"-n", "2", "--grace", "0.1", "sh", "-c", "[ $OSHRUN_RANK = 1 ] || exec sleep 60; echo last words; exit 3"});
    EXPECT_THAT(outcome.output, StartsWith("last words\noshrun: PE 1 (pid "));
  }
}

TEST(OshrunOutput, ShowsTheLastLinesOfThePeThatFailedAgain) {
  const TempDir dir;
  // PE 1 prints once oshrun has printed what PE 0 says, and PE 0 fails once oshrun has printed that.
  const std::string pes =
      "await() { until grep -q \"$1\" $OUT; do sleep 0.01; done; }; if [ $OSHRUN_RANK = 0 ]; "
      "then echo the cause of it; await 'line 40'; exit 3; "
      "else await 'cause'; for i in $(seq 40); do echo line $i; done; exec sleep 60; fi";
  const auto outcome =
      in_shell("OUT=\"$1\" \"$0\" -n 2 --grace 0.1 sh -c \"$2\" >\"$1\" 2>&1; echo status $?; cat \"$1\"",
               {dir.file("out"), pes});
  EXPECT_THAT(outcome.output, HasSubstr("status 3\n"));
  EXPECT_THAT(outcome.output,
              ::testing::ContainsRegex("\noshrun: the last lines of PE 0:\noshrun: \\| the cause of it\n"
                                       "oshrun: PE 0 \\(pid [0-9]+\\) on [^ ]+ exited with status 3\n$"));
}

TEST(OshrunOutput, WaitsForASlowReader) {
  const auto outcome = in_shell("\"$0\" -n 4 sh -c 'yes | head -c 1000000' | (sleep 0.3; wc -c)");
  EXPECT_EQ(outcome.output, "4000000\n");
}

TEST(OshrunOutput, DoesNotDelayAJobThatMustEnd) {
  const TempDir dir;
  const auto outcome =
      in_shell("mkfifo \"$1\"; sleep 100 < \"$1\" & \"$0\" -n 2 --timeout 1 yes > \"$1\"; echo status $?; kill $!",
               {dir.file("fifo")});
  EXPECT_THAT(outcome.output, HasSubstr("status 124\n"));
}

TEST(OshrunOutput, EndsAJobWhoseReaderIsGone) {
  const auto outcome = in_shell("\"$0\" -n 2 yes | head -n 1; echo \"statuses ${PIPESTATUS[*]}\"");
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("y\n"), HasSubstr("was killed by signal 13"), HasSubstr("statuses 141 0")));
}

TEST(OshrunOutput, SaysWhenItCannotBeWritten) {
  const auto outcome = in_shell("\"$0\" -n 2 yes > /dev/full; echo status $?");
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("cannot write what PEs print: No space left on device"), HasSubstr("status 141")));
}

TEST(OshrunOutput, LeavesTheLimitOfFilesOfThePesUnchanged) {
  const auto outcome = in_shell("ulimit -Sn 64; \"$0\" -n 80 sh -c 'ulimit -Sn'");
  EXPECT_EQ(outcome.output, repeat("64\n", 80));
}

TEST(OshrunOutput, SaysWhenThereAreTooFewFiles) {
  const auto outcome = in_shell("ulimit -n 64; \"$0\" -n 80 true; \"$0\" -n 80 --direct-output echo well");
  EXPECT_EQ(
      outcome.output,
      "oshrun: 144 open files are needed, 64 for oshrun itself and 80 for the output of 80 PEs, and the limit is 64: "
      "raise it (ulimit -Hn), or give --direct-output\n" +
          repeat("well\n", 80));
}

TEST(OshrunOutput, IsDirectIfRequestedOrForASinglePe) {
  const TempDir dir;
  const std::string where = " sh -c 'file=$(readlink /proc/$$/fd/1); echo $file >&2' 2>&1 > \"$1\"";
  const std::string file = dir.file("output");
  EXPECT_EQ(in_shell("\"$0\" -n 2 --direct-output" + where, {file}).output, repeat(file + "\n", 2));
  EXPECT_EQ(in_shell("\"$0\"" + where, {file}).output, file + "\n");
  EXPECT_THAT(in_shell("\"$0\" -n 2" + where, {file}).output, StartsWith("pipe:"));
}

}  // namespace
