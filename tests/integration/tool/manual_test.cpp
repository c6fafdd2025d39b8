// SPDX-License-Identifier: Apache-2.0
// The command line of gba: mistakes, the manual page and the completion.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/job.hpp"
#include "tests/support/manual.hpp"

namespace tool_test {
namespace {

using test_support::all_of;
using testing::HasSubstr;

std::set<std::string> commands() {
  const std::string help = gba({"--help"}).output;
  return all_of(help.substr(help.find("Subcommands:")), R"(\n  ([a-z]+) )");
}

std::set<std::string> options_of(const std::vector<std::string>& command) {
  auto line = command;
  line.emplace_back("--help");
  return test_support::options_in_help(gba(line).output);
}

std::string manual() {
  return test_support::manual(GBA_MANUAL);
}

TEST(Manual, NamesEveryCommandAndEveryOptionAndNoOther) {
  EXPECT_EQ(commands(), (std::set<std::string>{"list", "info", "check", "groups", "monitor", "regs", "selftest",
                                               "bench", "report", "limit", "reset", "help"}));
  EXPECT_EQ(all_of(manual(), R"(\n\.B gba ([a-z]+)\n)"), commands());
  std::set<std::string> options = options_of({});
  for (const auto& command : commands()) {
    const auto more = options_of({command});
    EXPECT_EQ(more.count("--json"), command == "help" ? 0U : 1U) << command;
    options.insert(more.begin(), more.end());
  }
  EXPECT_GT(options.size(), 7U);
  EXPECT_EQ(test_support::options_in_manual(manual()), options);
}

TEST(Manual, NamesTheEnvironmentVariables) {
  for (const auto* variable : {"GBA_DEVICE", "GBA_PCI_ID", "GBA_SYSFS", "GBA_DEVFS"}) {
    EXPECT_THAT(manual(), HasSubstr(variable));
  }
}

TEST(CommandLine, MistakesEndWithCode2) {
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {"nonsense"},
                                                    {"list", "/dev/gba0"},
                                                    {"info", "/dev/gba0", "/dev/gba1"},
                                                    {"info", "--watch"},
                                                    {"groups", "--interval", "0"},
                                                    {"groups", "--interval", "soon"},
                                                    {"selftest", "--barriers", "0"},
                                                    {"bench", "--rounds", "-1"},
                                                    {"reset", "--maybe"},
                                                    {"limit", "--groups", "0"},
                                                    {"help", "nonsense"},
                                                    {"--json"}};
  for (const auto& arguments : wrong) {
    const auto outcome = gba(arguments);
    EXPECT_EQ(outcome.exit.code, 2) << testing::PrintToString(arguments) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("--help"));
  }
}

TEST(CommandLine, HelpOfACommandIsAlsoACommand) {
  const auto all = gba({"help"});
  EXPECT_EQ(all.exit.code, 0);
  EXPECT_EQ(all.output, gba({"--help"}).output);
  const auto one = gba({"help", "bench"});
  EXPECT_EQ(one.exit.code, 0);
  EXPECT_EQ(one.output, gba({"bench", "--help"}).output);
  EXPECT_THAT(one.output, HasSubstr("--rounds"));
}

TEST(CommandLine, JsonMayStandBeforeTheCommand) {
  const auto before = gba({"--json", "list"});
  EXPECT_EQ(before.output, gba({"list", "--json"}).output);
  EXPECT_THAT(before.output, HasSubstr("\"schema\""));
}

TEST(CommandLine, VersionIsTheLibrarys) {
  EXPECT_THAT(gba({"--version"}).output, testing::ContainsRegex("^gba [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
}

TEST(CommandLine, OutputThatCannotBeWrittenIsAFailure) {
  const auto outcome =
      test_support::run({"bash", "-c", "env -u GBA_DEVICE " + test_support::program("gba") + " list > /dev/full"});
  EXPECT_EQ(outcome.exit.code, 5) << outcome.output;
}

std::set<std::string> completions(const std::vector<std::string>& words) {
  return test_support::completions(GBA_COMPLETION, "_gba", test_support::program("gba"), words);
}

TEST(Completion, OffersCommandsAndTheirOptions) {
  EXPECT_EQ(completions({""}), commands());
  EXPECT_EQ(completions({"re"}), (std::set<std::string>{"regs", "report", "reset"}));
  EXPECT_EQ(completions({"-"}), options_of({}));
  EXPECT_EQ(completions({"groups", "--"}), options_of({"groups"}));
  EXPECT_EQ(completions({"groups", "/dev/gba0", "--w"}), (std::set<std::string>{"--watch"}));
  EXPECT_EQ(completions({"info", "/de"}), std::set<std::string>{}) << "bash completes a file name";
}

}  // namespace
}  // namespace tool_test
