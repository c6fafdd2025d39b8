// SPDX-License-Identifier: Apache-2.0
// The manual pages of the commands, and the bash completion of oshrun.
#include "tests/integration/shmem/oshrun_runs.hpp"
#include "tests/support/manual.hpp"

namespace {

using namespace oshrun_test;
using namespace test_support;
using namespace testing;

using Words = std::set<std::string>;

Words options_in_help() {
  return test_support::options_in_help(launch({"--help"}).output);
}

TEST(OshrunManual, NamesEveryOptionAndNoOther) {
  const std::string page = manual(OSHRUN_MANUAL);
  EXPECT_GT(options_in_help().size(), 9U);
  EXPECT_EQ(options_in_manual(page), options_in_help());
  EXPECT_THAT(page, HasSubstr("\n.BI -x "));
  EXPECT_THAT(page, HasSubstr(" -n "));
  EXPECT_THAT(page, HasSubstr(" -np "));
  EXPECT_THAT(page, HasSubstr(" -N "));
  EXPECT_THAT(page, HasSubstr(" -H "));
}

TEST(OshrunManual, NamesEveryVariableThatItSets) {
  const auto added = launch({"-n", "2", "sh", "-c", "env"}).output;
  const std::string page = manual(OSHRUN_MANUAL);
  const Words variables = all_of(added, "\n(OSHRUN_[A-Z_]+)=");
  EXPECT_GT(variables.size(), 2U);
  for (const auto& variable : variables) {
    EXPECT_THAT(page, HasSubstr(variable));
  }
}

TEST(ShmemInfoManual, NamesEveryOptionAndNoOther) {
  const auto help = run({program("shmem_info"), "--help"}).output;
  EXPECT_EQ(options_in_manual(manual(SHMEM_INFO_MANUAL)), test_support::options_in_help(help));
}

TEST(OshccManual, NamesEveryKindOfShowmeAndNoOther) {
  const auto help = run({program("oshcc"), "--showme:help"}).output;
  const std::string kind = "(--showme:[a-z]+)";
  const Words kinds = all_of(help, kind);
  EXPECT_EQ(all_of(manual(OSHCC_MANUAL), kind), kinds);
  EXPECT_GT(kinds.size(), 7U);
  for (const auto& each : kinds) {
    EXPECT_TRUE(run({program("oshc++"), each}).exit.clean());
  }
}

Words completions(const std::vector<std::string>& words) {
  return test_support::completions(OSHRUN_COMPLETION, "_oshrun", oshrun_test::oshrun(), words);
}

TEST(OshrunCompletion, OffersOptionsThenProgramsThenFiles) {
  EXPECT_EQ(completions({"--"}), options_in_help());
  EXPECT_EQ(completions({"--gba", "off", "--bi"}), (Words{"--bind", "--bind-to"}));
  EXPECT_EQ(completions({"--mca", "btl", "self", "--map-by", "core", "--gr"}), Words{"--grace"});
  EXPECT_EQ(completions({"--bind-to", "c"}), Words{"core"});
  EXPECT_EQ(completions({"--bind", ""}), (Words{"none", "core", "numa"}));
  EXPECT_EQ(completions({"--gba", "re"}), Words{"require"});
  EXPECT_THAT(completions({"-n", "4", "env"}), IsSupersetOf({"env"}));
  EXPECT_THAT(completions({"-n", "4", "env", "--"}), IsEmpty()) << "arguments of the program";
  EXPECT_THAT(completions({"true", ":", "-n", "2", "--wd"}), IsSupersetOf({"--wdir"}));
}

}  // namespace
