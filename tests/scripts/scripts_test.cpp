// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/scripts/tree.hpp"
#include "tests/support/process.hpp"

namespace {

using scripts_test::in_tree;
using test_support::run;
using test_support::TempDir;
using testing::HasSubstr;
using testing::StartsWith;

/// A script, and arguments that it must refuse.
struct Misuse {
  std::string script;
  std::vector<std::string> arguments;
  std::string complaint;
};

void PrintTo(const Misuse& misuse, std::ostream* out) {
  *out << misuse.script;
  for (const auto& argument : misuse.arguments) {
    *out << ' ' << argument;
  }
}

class Script : public testing::TestWithParam<std::string> {};

TEST_P(Script, IsValidBashAndExecutable) {
  const auto path = in_tree("scripts/" + GetParam());
  const auto outcome = run({"bash", "-n", path});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_EQ(::access(path.c_str(), X_OK), 0);
}

TEST_P(Script, PrintsHelp) {
  const auto outcome = run({in_tree("scripts/" + GetParam()), "--help"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, StartsWith("Usage: scripts/" + GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, Script,
                         testing::Values("install-deps.sh", "build.sh", "test.sh", "soak.sh", "lint.sh", "demo.sh",
                                         "bench.sh", "coverage.sh", "fetch-vm.sh", "package.sh",
                                         "count-instructions.sh", "build-vm-kernel.sh", "debian-root.sh", "versions.sh",
                                         "flakes.sh", "unless-proved.sh", "wheel.sh"));

class WrongArguments : public testing::TestWithParam<Misuse> {};

TEST_P(WrongArguments, GiveAUsageError) {
  auto command = GetParam().arguments;
  command.insert(command.begin(), in_tree("scripts/" + GetParam().script));
  const auto outcome = run(command);
  EXPECT_EQ(outcome.exit.code, 2) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(GetParam().complaint));
  EXPECT_THAT(outcome.output, HasSubstr("Usage: scripts/" + GetParam().script));
}

INSTANTIATE_TEST_SUITE_P(All, WrongArguments,
                         testing::Values(Misuse{"install-deps.sh", {"all"}, "no such group: all"},
                                         Misuse{"build.sh", {"fast"}, "no such preset: fast"},
                                         Misuse{"build.sh", {"--fast"}, "unknown option: --fast"},
                                         Misuse{"build.sh", {"release", "debug"}, "more than one preset"},
                                         Misuse{"test.sh", {"--require"}, "--require needs labels"},
                                         Misuse{"test.sh", {"--require="}, "--require needs labels"},
                                         Misuse{"test.sh", {"--root"}, "--root needs the name"},
                                         Misuse{
                                             "test.sh", {"--root", "trixie", "--require", "vm"}, "exclude each other"},
                                         Misuse{"test.sh", {"--compiler", "icc"}, "--compiler needs g++ or clang"},
                                         Misuse{"test.sh", {"--compiler", "clang"}, "--compiler is for --root"},
                                         Misuse{"test.sh", {"--only", "msan"}, "--only needs one of: asan tsan"},
                                         Misuse{"test.sh", {"--full", "--only", "asan"}, "--full excludes --only"},
                                         Misuse{"flakes.sh", {"many"}, "not a number of runs: many"},
                                         Misuse{"unless-proved.sh", {"x"}, "expected a name, a folder, -- and"},
                                         Misuse{"debian-root.sh", {"--with"}, "--with needs groups of packages"},
                                         Misuse{"debian-root.sh", {"trixie"}, "expected a release and a folder"},
                                         Misuse{"debian-root.sh", {"13", "root"}, "not the name of a release: 13"},
                                         Misuse{"versions.sh", {"a", "b"}, "expected one argument at most"},
                                         Misuse{"soak.sh", {"1", "--fast"}, "not hours and not a label: --fast"},
                                         Misuse{"lint.sh", {}, "expected one argument"},
                                         Misuse{"demo.sh", {"0"}, "the number of PEs must be"},
                                         Misuse{"demo.sh", {"many"}, "the number of PEs must be"},
                                         Misuse{"demo.sh", {"2", "3"}, "unexpected argument: 3"},
                                         Misuse{"bench.sh", {"--fast"}, "unexpected argument: --fast"},
                                         Misuse{"coverage.sh", {"--fast"}, "unexpected argument: --fast"},
                                         Misuse{"package.sh", {"a", "b"}, "expected one argument at most"},
                                         Misuse{"wheel.sh", {"--from"}, "--from needs an argument"},
                                         Misuse{"count-instructions.sh", {}, "expected one or two arguments"},
                                         Misuse{"fetch-vm.sh", {"sid"}, "no kernel of that suite: sid"},
                                         Misuse{"build-vm-kernel.sh", {"--fast"}, "unexpected argument: --fast"}));

TEST(Lint, NamesAMissingBuildFolder) {
  const auto outcome = run({in_tree("scripts/lint.sh"), "/no/such/folder"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("no such folder: /no/such/folder"));
}

TEST(Lint, NeedsAConfiguredBuildFolder) {
  const TempDir folder;
  const auto outcome = run({in_tree("scripts/lint.sh"), folder.path()});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("is not a build folder"));
}

}  // namespace
