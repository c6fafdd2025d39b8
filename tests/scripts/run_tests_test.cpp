// SPDX-License-Identifier: Apache-2.0
// scripts/test.sh and scripts/soak.sh with a fake ctest that only prints which tests failed or were skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/scripts/stand_ins.hpp"

namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr const char* kSummary = "100% tests passed, 0 tests failed out of 2";

class RunTests : public testing::Test {
 protected:
  RunTests() {
    StandIns::write(tree_.file("scripts/arm64-root.sh"), "true");
    StandIns::write(tree_.file("scripts/debian-root.sh"), "echo 'skipped: no root here' >&2; exit 77");
  }

  /// Installs a ctest that lists vm_test under label vm, runs `in_asan` in the asan build, and reports vm_test as
  /// skipped in other builds.
  void ctest_that(const std::string& in_asan) {
    tree_.programs().add("ctest", "if [[ $* == *build-asan* ]]; then " + in_asan + "; exit; fi\n" + R"sh(
      if [[ $* == *-N* ]]; then
        [[ $* != *vm* ]] || echo "  Test  #2: vm_test"
        exit
      fi
      echo "The following tests did not run:"
      echo "	  2 - vm_test (Skipped)"
      echo "100% tests passed, 0 tests failed out of 2")sh");
  }

  ScriptTree tree_;
};

TEST_F(RunTests, EndWithTheSummaryOfTheMainRun) {
  ctest_that("true");
  const auto outcome = tree_.run("test.sh");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, EndsWith(std::string(kSummary) + "\n"));
}

TEST_F(RunTests, FailIfOnlyASanitizerFindsSomething) {
  ctest_that("false");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr(kSummary));
  EXPECT_THAT(outcome.output, EndsWith("test.sh: the unit tests failed under asan\n"));
}

TEST_F(RunTests, FailIfATestFails) {
  tree_.programs().add("ctest", "[[ $* == *build-* ]] || exit 8");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("test.sh: a test failed\n"));
}

TEST_F(RunTests, FailIfAFuzzTargetFindsSomething) {
  tree_.programs().add("ctest", R"([[ $* != *build-fuzz* ]] || { [[ $* == *"-L ^fuzz$"* ]] && exit 8; })");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("test.sh: a fuzz target found something"));
}

TEST_F(RunTests, SayWhyTheFuzzTargetsAreSkipped) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  std::filesystem::remove(tree_.fuzzer_library());
  const auto outcome = tree_.run("test.sh");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("fuzz targets: skipped, clang++ has no libFuzzer"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("build-fuzz")));
  const auto required = tree_.run("test.sh", {"--require", "fuzz"});
  EXPECT_EQ(required.exit.code, 1);
  EXPECT_THAT(required.output, EndsWith("test.sh: the fuzz targets were skipped, but label fuzz is required\n"));
}

TEST_F(RunTests, FailIfATestFailsOnArm64) {
  tree_.programs().add("ctest", "[[ $* != *build-arm64* ]] || exit 8");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("test.sh: the unit tests failed on arm64\n"));
}

TEST_F(RunTests, SayWhyTheTestsForArm64AreSkipped) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  const auto here = tree_.run("test.sh", {"--require", "arm64"});
  EXPECT_TRUE(here.exit.clean()) << here.output;
  EXPECT_THAT(here.output, HasSubstr("build-arm64"));
  StandIns::write(tree_.file("scripts/arm64-root.sh"), "echo fetching; echo 'no arm64 packages from here' >&2; exit 1");
  const auto outcome = tree_.run("test.sh");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("unit tests, arm64: skipped, no arm64 packages from here\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("build-arm64")));
  const auto required = tree_.run("test.sh", {"--require", "arm64"});
  EXPECT_EQ(required.exit.code, 1);
  EXPECT_THAT(required.output,
              EndsWith("test.sh: the unit tests for arm64 were skipped, but label arm64 is required\n"));
}

TEST_F(RunTests, NeedNoCrossCompilerOnArm64) {
  tree_.programs().add("ctest", "true");
  tree_.programs().add("uname", "echo aarch64");
  StandIns::write(tree_.file("scripts/arm64-root.sh"), "false");
  const auto outcome = tree_.run("test.sh", {"--require", "arm64"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("unit tests, arm64: skipped, this machine is an arm64 itself"));
}

// A stand-in for the root runs the command outside.
TEST_F(RunTests, InARootBuildAndRunTheUnitTestsThere) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  tree_.programs().add("cmake", "echo \"cmake $*\"");
  StandIns::write(tree_.file("scripts/versions.sh"), "true");
  StandIns::write(tree_.file("scripts/debian-root.sh"),
                  "while [[ $1 == -* ]]; do echo \"$1 $2\"; shift 2; done; echo \"root $1 ${2##*/}\"; \"${@:3}\"");
  const auto outcome = tree_.run("test.sh", {"--root", "trixie"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output,
              HasSubstr("root trixie trixie\ncmake --preset release -B build-trixie\n"));
  EXPECT_THAT(outcome.output, HasSubstr("cmake --build build-trixie\nctest --test-dir build-trixie "));
  EXPECT_THAT(outcome.output, EndsWith(" -L ^unit$\n"));
  EXPECT_THAT(tree_.run("test.sh", {"--root", "trixie", "-R", "kv"}).output,
              AllOf(StartsWith("--with soak,torch\n"), Not(HasSubstr("-L ^unit$"))));
  EXPECT_THAT(tree_.run("test.sh", {"--root", "trixie", "--compiler", "clang"}).output,
              AllOf(HasSubstr("-B build-trixie-clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ "),
                    HasSubstr("ctest --test-dir build-trixie-clang ")));
  tree_.programs().add("ctest", "exit 8");
  EXPECT_EQ(tree_.run("test.sh", {"--root", "trixie"}).exit.code, 8);
}

/// A root that runs the command outside.
TEST_F(RunTests, UnderAsanRunInDebian13IfThereIsARoot) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  tree_.programs().add("cmake", "echo \"cmake $*\"");
  const auto without = tree_.run("test.sh", {"--require", "trixie"});
  EXPECT_EQ(without.exit.code, 1);
  EXPECT_THAT(without.output, HasSubstr("unit tests, Debian 13: skipped, no root here\n"));
  EXPECT_THAT(without.output, HasSubstr("ctest --test-dir build-asan "));
  EXPECT_THAT(without.output,
              EndsWith("test.sh: the unit tests on Debian 13 were skipped, but label trixie is required\n"));
  StandIns::write(tree_.file("scripts/debian-root.sh"), "echo \"root $1 ${2##*/}\"; \"${@:3}\"");
  const auto within = tree_.run("test.sh", {"--require", "trixie"});
  EXPECT_TRUE(within.exit.clean()) << within.output;
  EXPECT_THAT(within.output, HasSubstr("root trixie trixie\ncmake --preset asan -B build-trixie-asan\n"));
  EXPECT_THAT(within.output, HasSubstr("root trixie trixie\nctest --test-dir build-trixie-asan "));
  EXPECT_THAT(within.output, Not(HasSubstr("build-asan")));
  tree_.programs().add("ctest", "[[ $* != *build-trixie-asan* ]]");
  const auto failed = tree_.run("test.sh");
  EXPECT_EQ(failed.exit.code, 1);
  EXPECT_THAT(failed.output, EndsWith("test.sh: the unit tests failed under asan on Debian 13\n"));
}

TEST_F(RunTests, WithoutARootAreSkipped) {
  const auto outcome = tree_.run("test.sh", {"--root", "trixie"});
  EXPECT_EQ(outcome.exit.code, 77);
  EXPECT_THAT(outcome.output, HasSubstr("skipped: no root here"));
}

// The real script, of a user who is not root.
TEST_F(RunTests, SayWhyThereIsNoRoot) {
  std::filesystem::copy_file(GBA_SOURCE_DIR "/scripts/debian-root.sh", tree_.file("scripts/debian-root.sh"),
                             std::filesystem::copy_options::overwrite_existing);
  tree_.programs().add("id", "echo 1000");
  EXPECT_EQ(tree_.run("test.sh", {"--root", "trixie"}).exit.code, 77);
  EXPECT_THAT(tree_.run("test.sh", {"--root", "trixie"}).output,
              EndsWith("skipped: only root can make a root folder\n"));
}

TEST_F(RunTests, FailIfTheBuildFails) {
  ctest_that("true");
  tree_.programs().add("cmake", "false");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, Not(HasSubstr(kSummary)));
}

TEST_F(RunTests, FailIfATestWithARequiredLabelIsSkipped) {
  ctest_that("true");
  const auto outcome = tree_.run("test.sh", {"--require", "vm"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("test.sh: vm_test was skipped, but label vm is required\n"));
}

TEST_F(RunTests, FailIfNoTestHasARequiredLabel) {
  ctest_that("true");
  const auto outcome = tree_.run("test.sh", {"--require=net"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("test.sh: no test has the required label net\n"));
}

TEST_F(RunTests, SkipSoakTestsAndPassArgumentsOn) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  const auto outcome = tree_.run("test.sh", {"-R", "barrier"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("-LE ^soak$ -R barrier\n"));
  EXPECT_THAT(outcome.output, HasSubstr("build-tsan --output-on-failure"));
}

TEST_F(RunTests, SoakRunsOnceAtFullCountsAndPrintsASummary) {
  tree_.programs().add("ctest", R"sh(
    echo "full counts: $GBA_SOAK, arguments: $*"
    echo "	  2 - vm_test (Skipped)"
    echo "	  3 - barrier_test (Timeout)"
    exit 8)sh");
  const auto outcome = tree_.run("soak.sh", {"0", "vm", "fault"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("full counts: 1, arguments: --test-dir build-soak"));
  EXPECT_THAT(outcome.output, HasSubstr("-L ^(vm|fault)$"));
  EXPECT_THAT(outcome.output, HasSubstr("soak: 1 rounds in 0 minutes, labels: vm fault, failed rounds: 1"));
  EXPECT_THAT(outcome.output, HasSubstr("1 barrier_test"));
  EXPECT_THAT(outcome.output, HasSubstr("1 vm_test"));
}

TEST_F(RunTests, SoakFuzzesOnRequestAndByDefault) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  EXPECT_THAT(tree_.run("soak.sh", {"0", "vm"}).output, Not(HasSubstr("build-fuzz")));
  const auto alone = tree_.run("soak.sh", {"0", "fuzz"});
  EXPECT_THAT(alone.output, HasSubstr("ctest --test-dir build-fuzz"));
  EXPECT_THAT(alone.output, Not(HasSubstr("ctest --test-dir build-soak")));
  const auto all = tree_.run("soak.sh", {"0"});
  EXPECT_THAT(all.output, HasSubstr("ctest --test-dir build-fuzz"));
  EXPECT_THAT(all.output, HasSubstr("ctest --test-dir build-soak"));
}

TEST_F(RunTests, SoakRunsTheTestsForArm64OnRequestAndByDefault) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  EXPECT_THAT(tree_.run("soak.sh", {"0", "vm"}).output, Not(HasSubstr("build-arm64")));
  const auto with_others = tree_.run("soak.sh", {"0", "arm64", "vm"});
  EXPECT_THAT(with_others.output, HasSubstr("ctest --test-dir build-arm64"));
  EXPECT_THAT(with_others.output, HasSubstr("-L ^(vm)$"));
  const auto alone = tree_.run("soak.sh", {"0", "arm64"});
  EXPECT_THAT(alone.output, Not(HasSubstr("ctest --test-dir build-soak")));
  EXPECT_THAT(tree_.run("soak.sh", {"0"}).output, HasSubstr("ctest --test-dir build-arm64"));
}

TEST_F(RunTests, SoakRepeatsUntilItsTimeIsOver) {
  tree_.programs().add("ctest", "true");
  test_support::Process soak({tree_.file("scripts/soak.sh"), "1"}, tree_.environment());
  EXPECT_TRUE(soak.wait_for_output("== soak round 3", test_support::Seconds{20})) << soak.output();
}

}  // namespace
