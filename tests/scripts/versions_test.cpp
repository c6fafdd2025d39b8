// SPDX-License-Identifier: Apache-2.0
// scripts/versions.sh, and the table of releases in docs/install.md, whose rows it writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/stand_ins.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/text.hpp"

namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

/// Which cells of a row.
constexpr std::size_t kRelease = 0, kArchitecture = 1, kCompiler = 2, kMpi = 4, kSlurm = 7, kBuilt = 8, kTests = 9;
constexpr std::size_t kCells = 10;

using Row = std::vector<std::string>;

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(separator, from)) != std::string::npos; from = at + separator.size()) {
    parts.push_back(text.substr(from, at - from));
  }
  parts.push_back(text.substr(from));
  return parts;
}

/// "| a | b |" as its cells.
Row cells(std::string line) {
  while (!line.empty() && line.back() == '\n') {
    line.pop_back();
  }
  if (line.size() < 4 || !line.starts_with("| ") || !line.ends_with(" |")) {
    return {};
  }
  return split(line.substr(2, line.size() - 4), " | ");
}

/// The rows of the table of releases, without its two head lines.
std::vector<Row> rows(const std::string& page) {
  std::vector<Row> found;
  std::istringstream lines(page.substr(std::min(page.size(), page.find("| release | architecture |"))));
  for (std::string line; std::getline(lines, line) && line.starts_with("|");) {
    found.push_back(cells(line));
  }
  found.erase(found.begin(), found.begin() + std::min<std::ptrdiff_t>(2, std::ssize(found)));
  return found;
}

/// Versions in two cells are the same, or one of them is "-": not installed here, or not where the row was written.
bool agree(const std::string& one, const std::string& other) {
  const std::string number = "[0-9.]+|-(?=,|$)";
  const auto ours = test_support::all_matches(one, number);
  const auto theirs = test_support::all_matches(other, number);
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [](const auto& a, const auto& b) { return a == b || a[0] == "-" || b[0] == "-"; });
}

/// A tree with scripts/versions.sh, a page with a table, and a build.
class ReleaseRow : public testing::Test {
 protected:
  ReleaseRow() {
    tree_.programs().add("dpkg-query", "echo 1:1.13.1+ds-2");
    tree_.programs().add("cmake", "echo cmake version 3.25.1");
    std::filesystem::create_directories(tree_.file("docs"));
    std::filesystem::create_directories(tree_.file("build/CMakeFiles/3.25.1"));
    std::filesystem::create_directories(tree_.file("build/lib"));
    write("build/CMakeCache.txt", "");
    write("build/lib/libgba.so", "");
    write("build/CMakeFiles/3.25.1/CMakeCXXCompiler.cmake",
          "set(CMAKE_CXX_COMPILER_ID \"GNU\")\nset(CMAKE_CXX_COMPILER_VERSION \"12.2.0\")\n");
  }

  void write(const std::string& path, const std::string& text) { std::ofstream(tree_.file(path)) << text; }

  /// The row that is printed.
  Row row(std::vector<std::string> arguments = {}) {
    const auto outcome = tree_.run("versions.sh", std::move(arguments));
    EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
    Row found = cells(outcome.output);
    found.resize(kCells);
    return found;
  }

  ScriptTree tree_;
};

TEST_F(ReleaseRow, NamesWhatTheBuildFound) {
  const Row found = row();
  EXPECT_EQ(found[kArchitecture], "x86_64");
  EXPECT_EQ(found[kCompiler], "g++ 12.2.0");
  EXPECT_EQ(found[kMpi], "Open MPI 1.13.1, MPICH 1.13.1");
  EXPECT_EQ(found[kSlurm], "1.13.1");
  EXPECT_EQ(found[kBuilt], "libgba");
  EXPECT_EQ(found[kTests], "-");
}

TEST_F(ReleaseRow, CountsTheTestsThatCtestPrinted) {
  write("build/test.log",
        "      Start  1: a\n"
        " 1/5 Test  #1: a ................   Passed    0.03 sec\n"
        " 2/5 Test #12: b ................***Skipped   0.03 sec\n"
        " 3/5 Test  #3: c ................***Failed    1.00 sec\n"
        " 4/5 Test  #4: d ................***Timeout   1.00 sec\n"
        " 5/5 Test  #5: e ................   Passed   10.03 sec\n"
        "The following tests did not run:\n\t 12 - b (Skipped)\n");
  EXPECT_THAT(row()[kTests], ContainsRegex("^2 of 5 passed, 1 skipped, 2 failed, 20..-..-..$"));
}

TEST_F(ReleaseRow, CountsTheTestsOfTheReport) {
  write("build/tests.xml",
        "<testsuite name=\"x\" tests=\"3\">\n\t<testcase name=\"a\" classname=\"a\" time=\"1\" status=\"run\">\n"
        "\t<testcase name=\"b\" classname=\"b\" time=\"1\" status=\"notrun\">\n"
        "\t<testcase name=\"c\" classname=\"c\" time=\"1\" status=\"run\">\n");
  EXPECT_THAT(row()[kTests], ContainsRegex("^2 of 3 passed, 1 skipped, 20..-..-..$"));
}

TEST_F(ReleaseRow, SaysWhatAnotherTestHasLeft) {
  write("build/tested", "`packages` passed\n");
  EXPECT_THAT(row()[kTests], ContainsRegex("^`packages` passed, 20..-..-..$"));
}

TEST_F(ReleaseRow, OfABuildForArm64HasTheVersionsOfItsPackages) {
  std::filesystem::create_directories(tree_.file("build-arm64-root"));
  write("build-arm64-root/.versions", "libucx-dev 1.14.0-1\n");
  write("build/CMakeCache.txt", "CMAKE_TOOLCHAIN_FILE:FILEPATH=/tree/scripts/arm64.cmake\n");
  const Row found = row();
  EXPECT_EQ(found[kArchitecture], "aarch64");
  EXPECT_EQ(found[kMpi], "Open MPI -, MPICH -");
  EXPECT_THAT(found, Contains("1.14.0"));
}

TEST_F(ReleaseRow, ReplacesThatOfTheSameReleaseArchitectureAndCompiler) {
  const std::string head = "# Releases\n\n| release | architecture | rest |\n|---|---|---|\n";
  write("docs/install.md", head + "| Debian 99 (none) | x86_64 | old |\n\n| x | x86_64 |\n");
  const std::string printed = tree_.run("versions.sh").output;
  EXPECT_EQ(tree_.run("versions.sh", {"--update"}).output, printed);
  const std::string appended = test_support::manual(tree_.file("docs/install.md"));
  EXPECT_EQ(appended, head + "| Debian 99 (none) | x86_64 | old |\n" + printed + "\n| x | x86_64 |\n");
  write("build/tested", "all passed");
  const std::string newer = tree_.run("versions.sh", {"--update", tree_.file("build")}).output;
  EXPECT_EQ(test_support::manual(tree_.file("docs/install.md")),
            head + "| Debian 99 (none) | x86_64 | old |\n" + newer + "\n| x | x86_64 |\n");
  write("build/CMakeFiles/3.25.1/CMakeCXXCompiler.cmake",
        "set(CMAKE_CXX_COMPILER_ID \"Clang\")\nset(CMAKE_CXX_COMPILER_VERSION \"14.0.6\")\n");
  const std::string another = tree_.run("versions.sh", {"--update"}).output;
  EXPECT_THAT(another, HasSubstr("| clang 14.0.6 |"));
  EXPECT_EQ(test_support::manual(tree_.file("docs/install.md")),
            head + "| Debian 99 (none) | x86_64 | old |\n" + newer + another + "\n| x | x86_64 |\n");
}

TEST_F(ReleaseRow, NeedsATable) {
  write("docs/install.md", "# Releases\n");
  const auto outcome = tree_.run("versions.sh", {"--update"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("docs/install.md has no table of releases\n"));
  EXPECT_EQ(test_support::manual(tree_.file("docs/install.md")), "# Releases\n");
}

TEST(TableOfReleases, HasOnlyRowsThatTheScriptWrites) {
  const auto table = rows(test_support::manual(GBA_SOURCE_DIR "/docs/install.md"));
  ASSERT_THAT(table, testing::Not(testing::IsEmpty()));
  for (const Row& row : table) {
    ASSERT_THAT(row, SizeIs(kCells)) << testing::PrintToString(row);
    EXPECT_THAT(row[kRelease], ContainsRegex("^Debian ([0-9]+ [(][a-z]+[)]|[a-z]+/sid)$"));
    EXPECT_THAT(row[kCompiler], ContainsRegex("^(g[+][+]|clang) [0-9.]+$"));
    EXPECT_THAT(row[kMpi], ContainsRegex("^Open MPI ([0-9.]+|-), MPICH ([0-9.]+|-)$"));
    EXPECT_THAT(row[kTests],
                AnyOf("-", ContainsRegex("^([0-9]+ of [0-9]+|`packages_arm64_root`) passed(, [0-9]+ skipped)?"
                                         "(, [0-9]+ failed)?, 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]$")));
  }
}

// The row of this build, if there is one in the table: software that is not installed here may be in the table.
TEST(TableOfReleases, AgreesWithTheScriptHere) {
  const auto build = std::filesystem::path(test_support::program("")).parent_path().parent_path();
  const auto outcome = test_support::run({GBA_SOURCE_DIR "/scripts/versions.sh", build});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  const Row here = cells(outcome.output);
  ASSERT_THAT(here, SizeIs(kCells)) << outcome.output;
  const auto table = rows(test_support::manual(GBA_SOURCE_DIR "/docs/install.md"));
  const auto compiler = [](const Row& row) { return row[kCompiler].substr(0, row[kCompiler].find(' ')); };
  const auto same = std::find_if(table.begin(), table.end(), [&](const Row& row) {
    return row.size() == kCells && row[kRelease] == here[kRelease] && row[kArchitecture] == here[kArchitecture] &&
           compiler(row) == compiler(here);
  });
  if (same == table.end()) {
    GTEST_SKIP() << "the table has no row of " << outcome.output;
  }
  for (std::size_t cell = kCompiler; cell <= kSlurm; ++cell) {
    EXPECT_TRUE(agree(here[cell], (*same)[cell])) << here[cell] << " here, in the table: " << (*same)[cell];
  }
  for (const std::string& part : split(here[kBuilt], ", ")) {
    EXPECT_THAT(split((*same)[kBuilt], ", "), Contains(part)) << "scripts/versions.sh --update writes the row";
  }
}

}  // namespace
