// SPDX-License-Identifier: Apache-2.0
// The exit codes of the programs: one table in the documents, repeated by the manual pages, and true.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <utility>
#include <vector>

#include "tests/scripts/tree.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace {

using scripts_test::in_tree;
/// Codes and their meanings, in the order of the text.
using Codes = std::vector<std::pair<std::string, std::string>>;

const std::map<std::string, std::string> kPages{{"gba", "driver/tool/gba.1"},
                                                {"gba-fake-device", "fake_device/gba-fake-device.1"},
                                                {"oshrun", "shmem/launcher/oshrun.1"},
                                                {"shmem_info", "shmem/info/shmem_info.1"},
                                                {"kv_shuffle", "tools/kv_shuffle/kv_shuffle.1"},
                                                {"kv_exchange", "tools/kv_exchange/kv_exchange.1"},
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

}  // namespace
