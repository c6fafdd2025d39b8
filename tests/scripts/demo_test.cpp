// SPDX-License-Identifier: Apache-2.0
// scripts/demo.sh with a fake oshrun that only prints the output of kv_shuffle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "tests/scripts/stand_ins.hpp"

namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class Demo : public testing::Test {
 protected:
  void oshrun_that(const std::string& body) { StandIns::write(tree_.file("build/bin/oshrun"), body); }

  ScriptTree tree_;
};

TEST_F(Demo, ShowsTheOutputOfTheProgramAndEndsWithPass) {
  oshrun_that(R"(echo "oshrun $*"; echo "kv_shuffle: PASS")");
  const auto outcome = tree_.run("demo.sh", {"3"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("oshrun -n 3 --gba fake " + tree_.file("build/bin/kv_shuffle --check --plan balanced\n")));
  EXPECT_THAT(outcome.output, EndsWith("kv_shuffle: PASS\n"));
}

TEST_F(Demo, SaysWhyItsFiguresAreNotThoseOfASwitch) {
  oshrun_that(R"(echo "kv_shuffle: PASS")");
  EXPECT_THAT(tree_.run("demo.sh", {"3"}).output, testing::ContainsRegex("shares [0-9]+ processors with the 3 PEs"));
}

TEST_F(Demo, InstallsNoPackagesOfTests) {
  oshrun_that(R"(echo "kv_shuffle: PASS")");
  tree_.programs().add("dpkg-query", "echo dpkg-query ${*:3} >> " + tree_.file("asked"));
  tree_.programs().add("apt-get", "exit 0");
  tree_.run("demo.sh");
  std::ostringstream asked;
  asked << std::ifstream(tree_.file("asked")).rdbuf();
  EXPECT_THAT(asked.str(), HasSubstr(" libcli11-dev "));
  EXPECT_THAT(asked.str(), Not(HasSubstr("openmpi")));
  EXPECT_THAT(asked.str(), Not(HasSubstr("gtest")));
}

TEST_F(Demo, BuildsInAFolderOfEitherGenerator) {
  oshrun_that(R"(echo "kv_shuffle: PASS")");
  tree_.programs().add("cmake", "echo cmake $* >> " + tree_.file("asked"));
  tree_.run("demo.sh");
  std::ofstream(tree_.file("build/CMakeCache.txt")) << "CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n";
  tree_.run("demo.sh");
  std::ostringstream asked;
  asked << std::ifstream(tree_.file("asked")).rdbuf();
  EXPECT_THAT(asked.str(), HasSubstr("cmake --preset release -DGBA_TESTS=AUTO\n"));
  EXPECT_THAT(asked.str(), HasSubstr("cmake --preset release -GUnix Makefiles -DGBA_TESTS=AUTO\n"));
}

TEST_F(Demo, RunsFourPesByDefault) {
  oshrun_that(R"(echo "oshrun $*"; echo "kv_shuffle: PASS")");
  EXPECT_THAT(tree_.run("demo.sh").output, HasSubstr("oshrun -n 4 "));
}

TEST_F(Demo, FailsWithoutPass) {
  oshrun_that(R"(echo "kv_shuffle: FAIL")");
  EXPECT_EQ(tree_.run("demo.sh").exit.code, 1);
}

TEST_F(Demo, FailsIfTheProgramFailsWhateverItPrints) {
  oshrun_that(R"(echo "kv_shuffle: PASS"; exit 3)");
  const auto outcome = tree_.run("demo.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("demo.sh: kv_shuffle failed\n"));
}

TEST_F(Demo, ShowsTheBuildOnlyIfItFails) {
  oshrun_that(R"(echo "kv_shuffle: PASS")");
  tree_.programs().add("cmake", "echo from cmake");
  EXPECT_THAT(tree_.run("demo.sh").output, Not(HasSubstr("from cmake")));
  tree_.programs().add("cmake", "echo from cmake; false");
  const auto outcome = tree_.run("demo.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("from cmake"));
}

}  // namespace
