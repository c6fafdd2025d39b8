// SPDX-License-Identifier: Apache-2.0
// The exit codes of the programs: one table in the documents, repeated by the manual pages, and true. What their help
// texts have in common.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tests/scripts/tree.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace {

using scripts_test::in_tree;
using testing::HasSubstr;
using testing::StartsWith;
/// Codes and their meanings, in the order of the text.
using Codes = std::vector<std::pair<std::string, std::string>>;

const std::map<std::string, std::string> kPages{{"gba", "driver/tool/gba.1"},
                                                {"gba-fake-device", "fake_device/gba-fake-device.1"},
                                                {"oshrun", "shmem/launcher/oshrun.1"},
                                                {"shmem_info", "shmem/info/shmem_info.1"},
                                                {"kv_shuffle", "tools/kv_shuffle/kv_shuffle.1"},
                                                {"kv_exchange", "tools/kv_exchange/kv_exchange.1"},
                                                {"shmem_perf", "bench/shmem_perf.1"},
                                                {"tune_barrier", "bench/tune_barrier.1"},
                                                {"tune_collective", "bench/tune_barrier.1"}};

Codes found_in(const std::string& text, const std::string& pattern) {
  Codes codes;
  for (const auto& match : test_support::all_matches(text, pattern)) {
    codes.emplace_back(match[1], match[2]);
  }
  return codes;
}

Codes codes_in_documents(const std::string& program) {
  return found_in(test_support::manual(in_tree("docs/troubleshooting.md")),
                  R"(\n\| (?:`[a-z_]+`, )?`)" + program + R"(`(?:, `[a-z_]+`)? \| ([^|]*) \| ([^|]*) \|)");
}

Codes codes_in_manual(const std::string& program) {
  const std::string page = test_support::manual(in_tree(kPages.at(program)));
  const auto begin = page.find("\n.SH EXIT STATUS\n");
  const std::string section = page.substr(begin, page.find("\n.SH ", begin + 1) - begin);
  return found_in(section, R"(\n\.TP\n\.B ([^\n]+)\n([^\n]+))");
}

TEST(ExitCodes, OfTheDocumentsAreThoseOfTheManualPages) {
  for (const auto& [program, page] : kPages) {
    const Codes codes = codes_in_documents(program);
    EXPECT_GE(codes.size(), 3U) << program;
    EXPECT_EQ(codes, codes_in_manual(program)) << page;
  }
}

TEST(ExitCodes, OfTheDocumentsAreThoseOfTheHeaderOfGba) {
  // gba --help prints the table of driver/tool/exit_code.hpp.
  const auto help = test_support::run({test_support::program("gba"), "--help"});
  EXPECT_EQ(found_in(help.output.substr(help.output.find("Exit codes:")), R"(\n  ([0-9]+)  ([^\n]+))"),
            codes_in_documents("gba"));
}

TEST(ExitCodes, AreAlikeForHelpVersionsAndWrongCommandLines) {
  for (const auto& [name, page] : kPages) {
    const std::string program = test_support::program(name);
    EXPECT_EQ(test_support::run({program, "--help"}).exit.code, 0) << name;
    EXPECT_EQ(test_support::run({program, "--version"}).exit.code, 0) << name;
    const auto wrong = test_support::run({program, "--no-such-option"});
    EXPECT_EQ(wrong.exit.code, 2) << name << ": " << wrong.output;
  }
}

/// The help texts of a program and of its commands.
std::string help_texts(const std::string& name) {
  const std::string program = test_support::program(name);
  std::string text = test_support::run({program, "--help"}).output;
  const auto list = text.find("\nSubcommands:\n");
  if (list != std::string::npos) {
    for (const auto& command : test_support::all_of(text.substr(list), "\n  ([a-z]+) ")) {
      text += test_support::run({program, command, "--help"}).output;
    }
  }
  return text;
}

TEST(HelpTexts, ShowNoTypesOfTheParser) {
  std::vector<std::string> names{"bench_rma"};
  for (const auto& [name, page] : kPages) {
    names.push_back(name);
  }
  for (const auto& name : names) {
    const std::string text = help_texts(name);
    EXPECT_GT(text.size(), 100U) << name;
    EXPECT_FALSE(test_support::matches(text, R"((.|\n)*\b(U?INT|FLOAT|TEXT|REQUIRED|Excludes)\b(.|\n)*)")) << text;
  }
  EXPECT_THAT(help_texts("gba"), HasSubstr("\n  --rounds N                  how many barriers; default 100000\n"));
  EXPECT_THAT(help_texts("gba"), HasSubstr("\n  --listen [ADDRESS:PORT]     be the second port"));
  EXPECT_THAT(help_texts("kv_exchange"),
              HasSubstr("\n  --room BYTES                bytes of memory for blocks; default"));
  EXPECT_THAT(help_texts("kv_exchange"), HasSubstr("\n  --lease N                   milliseconds"));
  EXPECT_THAT(help_texts("kv_shuffle"),
              HasSubstr("\n  --plan pair|balanced        pair: most with fewest tokens; balanced: "
                        "any PE to any PE; default pair\n"));
  EXPECT_THAT(help_texts("kv_shuffle"),
              HasSubstr("\n  --tolerance N               with balanced: do not change PEs within "
                        "this share of the mean; 0 to 1; default 0\n"));
  EXPECT_THAT(help_texts("gba-fake-device"), HasSubstr("@NAME is an abstract one; required\n"));
}

TEST(HelpTexts, OfTheTunersNameEachNumberOfPesOnce) {
  for (const char* name : {"tune_barrier", "tune_collective"}) {
    const auto numbers = test_support::all_of(help_texts(name), R"(default ([0-9,]+)\n)");
    ASSERT_EQ(numbers.size(), 1U) << name;
    const auto all = test_support::all_matches("," + *numbers.begin(), ",([0-9]+)");
    std::set<std::string> once;
    for (const auto& number : all) {
      EXPECT_TRUE(once.insert(number[1]).second) << name << ": " << *numbers.begin();
    }
    EXPECT_GE(once.size(), 3U);
  }
}

TEST(HelpTexts, AreTheAnswerIfACommandIsMissing) {
  for (const char* name : {"gba", "kv_exchange"}) {
    for (const auto& [word, answer] : {std::pair{"", "a command is missing"},
                                       {"lst", "lst is not a command"},
                                       {"--lst", "--lst is not an option"}}) {
      std::vector<std::string> command{test_support::program(name)};
      if (*word != '\0') {
        command.emplace_back(word);
      }
      const auto outcome = test_support::run(command);
      EXPECT_EQ(outcome.exit.code, 2);
      EXPECT_THAT(outcome.output, StartsWith(std::string(name) + ": " + answer + "\n\n"));
      EXPECT_THAT(outcome.output, HasSubstr("\nSubcommands:\n"));
    }
  }
}

}  // namespace
