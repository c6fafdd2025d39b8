// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include "shmem/launcher/child.hpp"
#include "shmem/launcher/options.hpp"
#include "shmem/launcher/streams.hpp"
#include "tests/support/process.hpp"

namespace shmem::launcher {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

base::Result<Options, Refusal> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "oshrun");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string refusal(const std::vector<const char*>& arguments) {
  const auto options = parse(arguments);
  if (options) {
    return "accepted";
  }
  EXPECT_EQ(options.error().status, kUsageStatus);
  return options.error().text;
}

TEST(Options, HaveDefaults) {
  const auto options = parse({"prog"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->pes(), 1);
  EXPECT_EQ(options->gba, "");
  EXPECT_EQ(options->bind, Bind::kNone);
  EXPECT_FALSE(options->report_bindings || options->tag_output || options->direct_output);
  EXPECT_EQ(options->grace, std::chrono::seconds{1});
  EXPECT_FALSE(options->timeout);
  ASSERT_EQ(options->programs.size(), 1U);
  EXPECT_EQ(options->programs[0].folder, "");
  EXPECT_THAT(options->programs[0].command, ElementsAre("prog"));
}

TEST(Options, AreReadUpToTheProgram) {
  const auto options = parse({"-n",
                              "4",
                              "--gba",
                              "fake",
                              "--timeout",
                              "2.5",
                              "-x",
                              "A=b=c",
                              "-x",
                              "EMPTY=",
                              "--wdir",
                              "/tmp",
                              "--ports",
                              "2",
                              "--bind",
                              "numa",
                              "--report-bindings",
                              "--tag-output",
                              "--grace",
                              "0",
                              "prog",
                              "-n",
                              "5",
                              "-np",
                              "--gba",
                              "--",
                              "-x"});
  ASSERT_TRUE(options) << options.error().text;
  ASSERT_EQ(options->programs.size(), 1U);
  const Program& program = options->programs[0];
  EXPECT_EQ(program.pes, 4);
  EXPECT_EQ(options->gba, "fake");
  EXPECT_EQ(options->ports, 2);
  EXPECT_EQ(options->timeout, std::chrono::milliseconds{2500});
  EXPECT_EQ(options->grace, std::chrono::milliseconds{0});
  EXPECT_EQ(options->bind, Bind::kNuma);
  EXPECT_TRUE(options->report_bindings && options->tag_output);
  EXPECT_EQ(program.folder, "/tmp");
  EXPECT_THAT(program.exports, ElementsAre(Pair("A", "b=c"), Pair("EMPTY", "")));
  EXPECT_THAT(program.command, ElementsAre("prog", "-n", "5", "-np", "--gba", "--", "-x"));
}

TEST(Options, AcceptSeveralPrograms) {
  const auto options =
      parse({"--gba", "off", "-n", "2", "-x", "A=1", "a", "x:y", ":", "-np", "3", "--wdir", "d", "b", "-n", ":", "c"});
  ASSERT_TRUE(options) << options.error().text;
  EXPECT_EQ(options->pes(), 6);
  EXPECT_EQ(options->gba, "off");
  ASSERT_EQ(options->programs.size(), 3U);
  EXPECT_THAT(options->programs[0].command, ElementsAre("a", "x:y"));
  EXPECT_EQ(options->programs[1].pes, 3);
  EXPECT_EQ(options->programs[1].folder, "d");
  EXPECT_THAT(options->programs[1].exports, ElementsAre());
  EXPECT_THAT(options->programs[1].command, ElementsAre("b", "-n"));
  EXPECT_EQ(options->programs[2].pes, 1);
}

TEST(Options, RefuseInvalidListsOfPrograms) {
  EXPECT_THAT(refusal({"a", ":"}), HasSubstr("no program"));
  EXPECT_THAT(refusal({":", "a"}), HasSubstr("no program"));
  EXPECT_THAT(refusal({"a", ":", "--gba", "off", "b"}), HasSubstr("no option --gba here (after \":\" only"));
  EXPECT_THAT(refusal({"-n", "4000", "a", ":", "-n", "97", "b"}), HasSubstr("more than 4096 PEs"));
}

TEST(Options, RefuseUnknownWords) {
  EXPECT_THAT(refusal({"--bind", "socket", "prog"}), HasSubstr("socket is not none, core or numa"));
  EXPECT_THAT(refusal({"--ports", "2", "prog"}), HasSubstr("--ports is for --gba fake"));
  EXPECT_THAT(refusal({"--gba", "fake", "--ports", "0", "prog"}), HasSubstr("0 is not a number of ports"));
  EXPECT_THAT(refusal({"--gba", "fake", "--ports", "709", "prog"}),
              HasSubstr("709 is not a number of ports from 1 to 708"));
  EXPECT_THAT(refusal({"--gba", "fak", "prog"}), HasSubstr("fak is not fake, off, require or the path of a device"));
  EXPECT_THAT(refusal({"--tag-output", "--direct-output", "prog"}), HasSubstr("exclude each other"));
  for (const char* device : {"require", "/dev/gba7", "vfio-user:@gba", "0000:3b:00.0", "@gba"}) {
    EXPECT_TRUE(parse({"--gba", device, "prog"})) << device;
  }
}

TEST(Options, AcceptTheNumberOfPesInEverySpelling) {
  for (const auto& arguments : std::vector<std::vector<const char*>>{
           {"-n", "7", "prog"}, {"-n7", "prog"}, {"-np", "7", "prog"}, {"--np", "7", "prog"}, {"--np=7", "prog"}}) {
    const auto options = parse(arguments);
    ASSERT_TRUE(options) << arguments[0] << options.error().text;
    EXPECT_EQ(options->pes(), 7) << arguments[0];
    EXPECT_THAT(options->programs[0].command, ElementsAre("prog"));
  }
  EXPECT_EQ(parse({"-x", "A=1", "-np", "3", "prog"})->pes(), 3);
}

TEST(Options, RefuseInvalidNumbers) {
  for (const char* number : {"0", "-1", "4097", "two", "2x", "", "2.5"}) {
    EXPECT_THAT(refusal({"-n", number, "prog"}), HasSubstr("--np")) << number;
  }
  EXPECT_TRUE(parse({"-n", "4096", "prog"}));
  for (const char* time : {"0", "-1", "soon", "nan", "1e99"}) {
    EXPECT_THAT(refusal({"--timeout", time, "prog"}), HasSubstr("--timeout")) << time;
  }
  EXPECT_THAT(refusal({"--grace", "-1", "prog"}), HasSubstr("--grace"));
}

TEST(Options, RefuseAMissingProgram) {
  EXPECT_THAT(refusal({}), HasSubstr("no program to run"));
  EXPECT_THAT(refusal({"-n", "2"}), HasSubstr("no program to run"));
  EXPECT_THAT(refusal({"-n"}), HasSubstr("--np"));
}

TEST(Options, RefuseUnknownOnes) {
  EXPECT_THAT(refusal({"--speed", "9", "prog"}), HasSubstr("no option --speed"));
}

TEST(Options, ExportOnlyVariablesThatAreSet) {
  ::setenv("OSHRUN_TEST_VARIABLE", "there", 1);
  const auto options = parse({"-x", "OSHRUN_TEST_VARIABLE", "prog"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->programs[0].exports, ElementsAre(Pair("OSHRUN_TEST_VARIABLE", "there")));
  ::unsetenv("OSHRUN_TEST_VARIABLE");
  EXPECT_THAT(refusal({"-x", "OSHRUN_TEST_VARIABLE", "prog"}), HasSubstr("-x OSHRUN_TEST_VARIABLE: it is not set"));
  EXPECT_THAT(refusal({"-x", "=value", "prog"}), HasSubstr("-x =value"));
}

TEST(Options, GiveHelp) {
  const auto options = parse({"--help"});
  ASSERT_FALSE(options);
  EXPECT_EQ(options.error().status, 0);
  EXPECT_THAT(options.error().text, AllOf(HasSubstr("Usage: oshrun [OPTIONS] PROGRAM"), HasSubstr("--timeout")));
}

class FindProgram : public ::testing::Test {
 protected:
  void make(const std::string& name, mode_t mode) const {
    std::ofstream(dir_.file(name)) << "#!/bin/sh\n";
    ::chmod(dir_.file(name).c_str(), mode);
  }
  [[nodiscard]] std::string in_path(const std::string& name) const {
    const auto found = find_program(name, "/nonexistent:" + dir_.path() + ":/usr/bin");
    return found ? *found : found.error().text;
  }
  test_support::TempDir dir_;
};

TEST_F(FindProgram, SearchesTheFoldersInOrder) {
  make("env", 0755);
  EXPECT_EQ(in_path("env"), dir_.file("env"));
}

TEST_F(FindProgram, SkipsFilesThatCannotBeExecuted) {
  make("env", 0644);
  EXPECT_EQ(in_path("env"), "/usr/bin/env");
  make("no-such-program-elsewhere", 0644);
  EXPECT_THAT(in_path("no-such-program-elsewhere"), HasSubstr("Permission denied"));
  EXPECT_THAT(in_path("no-such-program-anywhere"), HasSubstr("no such program in PATH"));
}

TEST_F(FindProgram, UsesANameWithASlashUnchanged) {
  make("prog", 0755);
  EXPECT_EQ(in_path(dir_.file("prog")), dir_.file("prog"));
  EXPECT_THAT(in_path("./prog"), HasSubstr("cannot run ./prog: No such file"));
  EXPECT_THAT(in_path(dir_.path() + "/"), HasSubstr("Is a directory"));
}

TEST_F(FindProgram, ResolvesRelativePathsInTheProgramsWorkingFolder) {
  make("prog", 0755);
  EXPECT_EQ(find_program("./prog", "", dir_.path()).value(), "./prog");
  EXPECT_EQ(find_program("prog", ":", dir_.path()).value(), "./prog");
  EXPECT_EQ(find_program("/bin/sh", "", dir_.path()).value(), "/bin/sh");
  EXPECT_FALSE(find_program("./prog", "", "/"));
}

TEST(Environment, HasEachVariableOnce) {
  ::setenv("OSHRUN_TEST_VARIABLE", "ours", 1);
  ::setenv("OSHRUN_TEST_VARIABLE_2", "other", 1);
  Environment environment;
  environment.set("OSHRUN_TEST_VARIABLE", "new");
  const auto& entries = environment.entries();
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "OSHRUN_TEST_VARIABLE=new"), 1);
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "OSHRUN_TEST_VARIABLE=ours"), 0);
  EXPECT_EQ(std::count(entries.begin(), entries.end(), "OSHRUN_TEST_VARIABLE_2=other"), 1);
}

TEST(ExitText, SaysHowAProcessEnded) {
  EXPECT_EQ(exit_text(3 << 8), "exited with status 3");
  EXPECT_EQ(exit_status(3 << 8), 3);
  EXPECT_EQ(exit_text(SIGKILL), "was killed by signal 9 (Killed)");
  EXPECT_EQ(exit_status(SIGKILL), 137);
  EXPECT_EQ(exit_text(SIGSEGV | 0x80), "was killed by signal 11 (Segmentation fault), core dumped");
}

}  // namespace
}  // namespace shmem::launcher
