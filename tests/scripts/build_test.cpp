// SPDX-License-Identifier: Apache-2.0
// scripts/build.sh with a fake cmake that only prints its arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/scripts/stand_ins.hpp"

namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

class Build : public testing::Test {
 protected:
  Build() { tree_.programs().add("cmake", R"(echo "cmake $*")"); }
  /// In the root of the tree, as its users type it.
  test_support::Outcome run(const std::string& arguments) {
    return test_support::run({"bash", "-c", "cd " + tree_.file("") + " && bash scripts/build.sh " + arguments},
                             tree_.environment());
  }

  ScriptTree tree_;
};

TEST_F(Build, BuildsEverythingByDefault) {
  const auto outcome = run("");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("cmake --preset release\ncmake --build --preset release\n"));
}

TEST_F(Build, BuildsOnlyTheExamplesIfAsked) {
  const auto outcome = run("-examples");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("cmake --preset release -DGBA_EXAMPLES=ON -DGBA_TESTS=AUTO\n"
                                        "cmake --build --preset release --target examples\n"));
  EXPECT_THAT(run("debug -examples").output, HasSubstr("cmake --build --preset debug --target examples\n"));
}

TEST_F(Build, KeepsTheGeneratorOfAFolderThatWasConfiguredWithoutAPreset) {
  std::ofstream(tree_.file("build/CMakeCache.txt")) << "CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n";
  EXPECT_THAT(run("").output, ContainsRegex("cmake --preset release -GUnix Makefiles\n"
                                            "cmake --build --preset release -j [0-9]+\n"));
}

TEST_F(Build, FailsIfTheBuildFails) {
  tree_.programs().add("cmake", R"([[ "$*" != --build* ]])");
  EXPECT_EQ(run("-examples").exit.code, 1);
}

}  // namespace
