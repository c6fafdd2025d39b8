// SPDX-License-Identifier: Apache-2.0
// What libgba.so exports is what gba/gba.h declares, no more and no less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/process.hpp"

namespace {

using Names = std::set<std::string>;

Names declared_in(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  const std::regex declaration(R"(GBA_API [^;(]*?\b(gba_\w+)\()");
  Names names;
  for (std::sregex_iterator match(header.begin(), header.end(), declaration), end; match != end; ++match) {
    names.insert((*match)[1]);
  }
  return names;
}

Names exported_by(const std::string& library) {
  const auto outcome = test_support::run({"nm", "-D", "--defined-only", "--format=posix", library});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  std::istringstream lines(outcome.output);
  Names names;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find_first_of(" @"));
    const bool version_node = line.find(" A ") != std::string::npos;
    if (!version_node) names.insert(name);
  }
  return names;
}

TEST(LibGba, ExportsWhatItsHeaderDeclaresAndNothingElse) {
  const Names declared = declared_in(GBA_HEADER);
  EXPECT_EQ(declared.count("gba_open"), 1U);
  EXPECT_EQ(exported_by(GBA_LIBRARY), declared);
}

TEST(LibGba, NeedsNoLibraryButTheSystems) {
  const auto outcome = test_support::run({"readelf", "-d", GBA_LIBRARY});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  std::istringstream lines(outcome.output);
  const std::regex allowed(R"(\[(libstdc\+\+|libm|libgcc_s|libc|ld-linux[^.]*|lib[atu]+[a-z]*san)\.so\.[0-9]+\])");
  for (std::string line; std::getline(lines, line);) {
    if (line.find("(NEEDED)") != std::string::npos) {
      EXPECT_TRUE(std::regex_search(line, allowed)) << line;
    }
    if (line.find("(SONAME)") != std::string::npos) {
      EXPECT_NE(line.find("[libgba.so.0]"), std::string::npos) << line;
    }
  }
}

}  // namespace
