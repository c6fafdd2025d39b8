// SPDX-License-Identifier: Apache-2.0
// scripts/test.sh, scripts/soak.sh, scripts/flakes.sh and .ci/run with a fake ctest that only prints which tests failed
// or were skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
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

TEST_F(RunTests, BuildOneConfigurationUnlessAskedForMore) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  EXPECT_THAT(tree_.run("test.sh").output, Not(HasSubstr("build-")));
  const auto full = tree_.run("test.sh", {"--full"}).output;
  for (const char* part : {"build-asan", "build-tsan", "build-fuzz", "build-arm64", "--test-dir build "}) {
    EXPECT_THAT(full, HasSubstr(part));
  }
  const auto only = tree_.run("test.sh", {"--only", "tsan"}).output;
  EXPECT_THAT(only, HasSubstr("--test-dir build-tsan "));
  EXPECT_THAT(only, Not(HasSubstr("--test-dir build ")));
  EXPECT_THAT(only, Not(HasSubstr("build-asan")));
}

TEST_F(RunTests, ProveAgainOnlyInAFullRun) {
  tree_.programs().add("ctest", "echo \"proves: ${GBA_PROVE:-what is new}\"");
  std::filesystem::create_directories(tree_.file("build/tests/proved"));
  std::ofstream(tree_.file("build/tests/proved/model_x")) << "1234 model_x\n";
  std::filesystem::create_directories(tree_.file("tests"));
  EXPECT_THAT(tree_.run("test.sh").output, HasSubstr("proves: what is new"));
  EXPECT_FALSE(std::filesystem::exists(tree_.file("tests/proved.txt")));
  const auto full = tree_.run("test.sh", {"--full"});
  EXPECT_TRUE(full.exit.clean()) << full.output;
  EXPECT_THAT(full.output, HasSubstr("proves: all"));
  std::ostringstream proved;
  proved << std::ifstream(tree_.file("tests/proved.txt")).rdbuf();
  EXPECT_EQ(proved.str(), "1234 model_x\n");
}

// A fake ctest whose test `late` fails in the main run and, unless `passes_alone`, also alone.
std::string ctest_with_a_failure(bool passes_alone) {
  return std::string("[[ $* == *^late* ]] && exit ") + (passes_alone ? "0" : "8") + R"sh(
    echo " 1/2 Test  #1: early ............   Passed    0.01 sec"
    echo " 2/2 Test  #2: late .............***Failed    0.01 sec"
    echo "PE 3 came too late"
    echo "50% tests passed, 1 tests failed out of 2"
    echo "The following tests FAILED:"
    echo "	  2 - late (Failed)"
    exit 8)sh";
}

TEST_F(RunTests, RunAFailedTestOnceMoreOnRequest) {
  tree_.programs().add("ctest", ctest_with_a_failure(true));
  EXPECT_EQ(tree_.run("test.sh").exit.code, 1);
  const auto outcome = tree_.run("test.sh", {"--rerun"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("== once more, alone: late\nFLAKY: late\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\n  PE 3 came too late\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("   1/2")));
}

TEST_F(RunTests, FailIfATestFailsTwice) {
  tree_.programs().add("ctest", ctest_with_a_failure(false));
  const auto outcome = tree_.run("test.sh", {"--rerun"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, Not(HasSubstr("FLAKY")));
  EXPECT_THAT(outcome.output, EndsWith("test.sh: a test failed\n"));
}

TEST_F(RunTests, GoOnWithoutPyTorch) {
  tree_.programs().add("ctest", "true");
  tree_.programs().add("dpkg-query", R"(for a in "${@:3}"; do [[ $a == *torch* ]] || echo "$a installed"; done)");
  tree_.programs().add("apt-get", "exit 100");
  tree_.programs().add("sudo", "\"$@\"");
  tree_.programs().add("sleep", "true");
  const auto outcome = tree_.run("test.sh");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("PyTorch's tests: skipped, install-deps.sh: apt-get update failed twice"));
}

TEST_F(RunTests, RefuseABuildFolderOfAnotherTree) {
  tree_.programs().add("ctest", "true");
  std::ofstream(tree_.file("build/CMakeCache.txt")) << "CMAKE_HOME_DIRECTORY:INTERNAL=/another/tree\n";
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output,
              EndsWith("/build was configured for another tree, /another/tree: remove it, then run this again\n"));
}

TEST_F(RunTests, SayThatTheDiskIsFull) {
  tree_.programs().add("cmake", "echo 'No space left on device' >&2; exit 1");
  tree_.programs().add("df", "echo Avail; echo 12");
  const auto outcome = tree_.run("test.sh");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("test.sh: the disk is full: 0 MiB are left for "));
}

TEST_F(RunTests, FailIfOnlyASanitizerFindsSomething) {
  ctest_that("false");
  const auto outcome = tree_.run("test.sh", {"--full"});
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
  const auto outcome = tree_.run("test.sh", {"--only", "fuzz"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("test.sh: a fuzz target found something"));
}

TEST_F(RunTests, SayWhyTheFuzzTargetsAreSkipped) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  std::filesystem::remove(tree_.fuzzer_library());
  const auto outcome = tree_.run("test.sh", {"--only", "fuzz"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("fuzz targets: skipped, clang++ has no libFuzzer"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("build-fuzz")));
  const auto required = tree_.run("test.sh", {"--full", "--require", "fuzz"});
  EXPECT_EQ(required.exit.code, 1);
  EXPECT_THAT(required.output, EndsWith("test.sh: the fuzz targets were skipped, but label fuzz is required\n"));
}

TEST_F(RunTests, FailIfATestFailsOnArm64) {
  tree_.programs().add("ctest", "[[ $* != *build-arm64* ]] || exit 8");
  const auto outcome = tree_.run("test.sh", {"--full"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, EndsWith("test.sh: the unit tests failed on arm64\n"));
}

TEST_F(RunTests, SayWhyTheTestsForArm64AreSkipped) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  const auto here = tree_.run("test.sh", {"--full", "--require", "arm64"});
  EXPECT_TRUE(here.exit.clean()) << here.output;
  EXPECT_THAT(here.output, HasSubstr("build-arm64"));
  StandIns::write(tree_.file("scripts/arm64-root.sh"), "echo fetching; echo 'no arm64 packages from here' >&2; exit 1");
  const auto outcome = tree_.run("test.sh", {"--full"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("unit tests, arm64: skipped, no arm64 packages from here\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("build-arm64")));
  const auto required = tree_.run("test.sh", {"--full", "--require", "arm64"});
  EXPECT_EQ(required.exit.code, 1);
  EXPECT_THAT(required.output,
              EndsWith("test.sh: the unit tests for arm64 were skipped, but label arm64 is required\n"));
}

TEST_F(RunTests, NeedNoCrossCompilerOnArm64) {
  tree_.programs().add("ctest", "true");
  tree_.programs().add("uname", "echo aarch64");
  StandIns::write(tree_.file("scripts/arm64-root.sh"), "false");
  const auto outcome = tree_.run("test.sh", {"--only", "arm64", "--require", "arm64"});
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
  EXPECT_THAT(outcome.output, HasSubstr("root trixie trixie\ncmake --preset release -B build-trixie\n"));
  EXPECT_THAT(outcome.output, HasSubstr("cmake --build build-trixie\nctest --test-dir build-trixie "));
  EXPECT_THAT(outcome.output, EndsWith(" -L ^unit$\n"));
  EXPECT_THAT(tree_.run("test.sh", {"--root", "trixie", "-R", "kv"}).output,
              AllOf(StartsWith("--with soak,torch\n"), Not(HasSubstr("-L ^unit$"))));
  EXPECT_THAT(tree_.run("test.sh", {"--root", "trixie", "--compiler", "clang"}).output,
              AllOf(HasSubstr("-B build-trixie-clang -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++\n"),
                    HasSubstr("ctest --test-dir build-trixie-clang ")));
  tree_.programs().add("ctest", "exit 8");
  EXPECT_EQ(tree_.run("test.sh", {"--root", "trixie"}).exit.code, 8);
}

/// A root that runs the command outside.
TEST_F(RunTests, UnderAsanRunInDebian13IfThereIsARoot) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  tree_.programs().add("cmake", "echo \"cmake $*\"");
  const auto without = tree_.run("test.sh", {"--full", "--require", "trixie"});
  EXPECT_EQ(without.exit.code, 1);
  EXPECT_THAT(without.output, HasSubstr("unit tests, Debian 13: skipped, no root here\n"));
  EXPECT_THAT(without.output, HasSubstr("ctest --test-dir build-asan "));
  EXPECT_THAT(without.output,
              EndsWith("test.sh: the unit tests on Debian 13 were skipped, but label trixie is required\n"));
  StandIns::write(tree_.file("scripts/debian-root.sh"), "echo \"root $1 ${2##*/}\"; \"${@:3}\"");
  const auto within = tree_.run("test.sh", {"--full", "--require", "trixie"});
  EXPECT_TRUE(within.exit.clean()) << within.output;
  EXPECT_THAT(within.output, HasSubstr("root trixie trixie\ncmake --preset asan -B build-trixie-asan\n"));
  EXPECT_THAT(within.output, HasSubstr("root trixie trixie\nctest --test-dir build-trixie-asan "));
  EXPECT_THAT(within.output, Not(HasSubstr("build-asan")));
  tree_.programs().add("ctest", "[[ $* != *build-trixie-asan* ]]");
  const auto failed = tree_.run("test.sh", {"--only", "asan"});
  EXPECT_EQ(failed.exit.code, 1);
  EXPECT_THAT(failed.output, EndsWith("test.sh: the unit tests failed under asan on Debian 13\n"));
}

TEST_F(RunTests, OnDebianTestingRunIfThereIsARoot) {
  tree_.programs().add("ctest", "echo \"ctest $*\"");
  tree_.programs().add("cmake", "echo \"cmake $*\"");
  StandIns::write(tree_.file("scripts/debian-root.sh"),
                  "echo 'debian-root.sh: skipped: Debian testing is broken today' >&2; exit 77");
  const auto without = tree_.run("test.sh", {"--full", "--require", "testing"});
  EXPECT_EQ(without.exit.code, 1);
  EXPECT_THAT(without.output, HasSubstr("unit tests, Debian testing: skipped, Debian testing is broken today\n"));
  EXPECT_THAT(without.output,
              EndsWith("test.sh: the unit tests on Debian testing were skipped, but label testing is required\n"));
  StandIns::write(tree_.file("scripts/debian-root.sh"), "echo \"root $1 ${2##*/}\"; \"${@:3}\"");
  const auto within = tree_.run("test.sh", {"--only", "testing", "--require", "testing"});
  EXPECT_TRUE(within.exit.clean()) << within.output;
  EXPECT_THAT(within.output, HasSubstr("root forky forky\ncmake --preset release -B build-forky\n"
                                       "cmake --build build-forky\n"));
  EXPECT_THAT(within.output, HasSubstr("root forky forky\nctest --test-dir build-forky "));
  tree_.programs().add("ctest", "[[ $* != *build-forky* ]]");
  const auto failed = tree_.run("test.sh", {"--only", "testing"});
  EXPECT_EQ(failed.exit.code, 1);
  EXPECT_THAT(failed.output, EndsWith("test.sh: the unit tests failed on Debian testing\n"));
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

TEST_F(RunTests, SoakLooksForFlakesOnRequestAndByDefault) {
  tree_.programs().add("ctest", "true");
  EXPECT_THAT(tree_.run("soak.sh", {"0", "vm"}).output, Not(HasSubstr("of 20: passed")));
  EXPECT_THAT(tree_.run("soak.sh", {"0", "flakes"}).output, HasSubstr("run 20 of 20: passed"));
  EXPECT_THAT(tree_.run("soak.sh", {"0"}).output, HasSubstr("run 20 of 20: passed"));
  tree_.programs().add("ctest", "[[ $* != *'-j '* || $* == *build-* ]]");  // flakes.sh only
  EXPECT_EQ(tree_.run("soak.sh", {"0", "flakes"}).exit.code, 1);
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
  EXPECT_TRUE(soak.wait_for_output("== soak round 3", test_support::Seconds{120})) << soak.output();
}

TEST_F(RunTests, FlakesListsWhatDidNotPassEachTime) {
  tree_.programs().add("ctest", R"sh(
    number="$(cat "$0.runs" 2>/dev/null || echo 0)"
    echo $((number + 1)) >"$0.runs"
    echo "	  2 - vm_test (Skipped)"
    ((number == 1)) || exit 0
    echo "	  3 - barrier_test (Timeout)"
    exit 8)sh");
  const auto outcome = tree_.run("flakes.sh", {"3", "-R", "test"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("run 2 of 3: failed"));
  EXPECT_THAT(outcome.output, HasSubstr("run 3 of 3: passed"));
  EXPECT_THAT(outcome.output, EndsWith("  1 barrier_test\nskipped: vm_test\n"));
  EXPECT_TRUE(tree_.run("flakes.sh", {"1"}).exit.clean());
}

// A tree with a history of `commits` commits, of which the last one changed `folder`.
void make_history(const ScriptTree& tree, int commits, const std::string& folder) {
  const std::string script = "cd " + tree.file("") + R"sh(
    git init -q . && git config user.name x && git config user.email x@y
    mkdir -p .ci && cp )sh" GBA_SOURCE_DIR R"sh(/.ci/run .ci/run
    export GIT_COMMITTER_DATE="2026-01-01T00:00:00Z"
    for ((i = 1; i < )sh" + std::to_string(commits) +
                             R"sh(; i++)); do git commit -q --allow-empty -m x; done
    export GIT_COMMITTER_DATE="2026-01-02T00:00:00Z"
    mkdir -p )sh" + folder + "; echo >" +
                             folder + "/x; git add " + folder + "/x; git commit -q -m x\n";
  const auto outcome = test_support::run({"/bin/bash", "-euc", script}, {}, test_support::Seconds{60});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
}

std::string parts_after(int commits, const std::string& folder) {
  ScriptTree tree;
  make_history(tree, commits, folder);
  return tree.run("../.ci/run", {"--print"}).output;
}

TEST(Ci, RunsThePartsInTurn) {
  EXPECT_EQ(parts_after(3, "docs"), "asan\n");
  EXPECT_EQ(parts_after(4, "docs"), "tsan fuzz\n");
  EXPECT_EQ(parts_after(5, "docs"), "arm64\n");
}

TEST(Ci, RunsThePartThatBelongsToTheChange) {
  EXPECT_EQ(parts_after(6, "shmem"), "asan arm64\n");
  EXPECT_EQ(parts_after(3, "shmem"), "asan\n");
  EXPECT_EQ(parts_after(5, "fake_device"), "arm64 fuzz\n");
}

TEST(Ci, EndsWithTheSummaryAfterALineThatSaysWhatRan) {
  ScriptTree tree;
  make_history(tree, 4, "docs");
  StandIns::write(tree.file("scripts/test.sh"), R"sh(
    echo "test.sh $*"
    cd "${0%/*}/.."
    [[ $* == *--only* ]] ||
      printf '%s\n' "50% tests passed, 1 tests failed out of 2" "Total" "FLAKY: late" >build/test.log
    [[ $* != *fuzz* ]])sh");
  const auto outcome = tree.run("../.ci/run");
  EXPECT_EQ(outcome.exit.code, 1);  // fuzz failed
  EXPECT_THAT(outcome.output,
              StartsWith("test.sh --rerun\ntest.sh --rerun --only tsan\ntest.sh --rerun --only fuzz\n"));
  EXPECT_THAT(outcome.output,
              EndsWith("\nFLAKY: late\n"
                       "Ran in 0 minutes: scripts/test.sh, tsan fuzz. Not run: asan arm64 testing, soak.\n"
                       "50% tests passed, 1 tests failed out of 2\nTotal\n"));
}

/// scripts/unless-proved.sh in a tree without git.
class Proofs : public testing::Test {
 protected:
  Proofs() {
    std::filesystem::create_directories(tree_.file("tests"));
    write("1");
  }

  void write(const std::string& content) { std::ofstream(tree_.file("model.pml")) << content; }
  std::string prove(const std::string& command, const std::string& variable = "X=") {
    const std::vector<std::string> arguments{"/usr/bin/env",
                                             variable,
                                             tree_.file("scripts/unless-proved.sh"),
                                             "model_x",
                                             tree_.file("build/proved"),
                                             "model.pml",
                                             "--",
                                             "/bin/sh",
                                             "-c",
                                             command};
    return test_support::run(arguments, tree_.environment(), test_support::Seconds{60}).output;
  }

  ScriptTree tree_;
};

TEST_F(Proofs, AreNotRepeatedUntilSomethingChanges) {
  EXPECT_EQ(prove("echo ran"), "ran\n");
  EXPECT_THAT(prove("echo ran"), StartsWith("proved before"));
  EXPECT_EQ(prove("echo ran; true"), "ran\n");  // other arguments
  EXPECT_EQ(prove("echo ran"), "ran\n");
  EXPECT_EQ(prove("echo ran", "GBA_PROVE=all"), "ran\n");
  EXPECT_EQ(prove("echo ran", "GBA_SOAK=1"), "ran\n");
  EXPECT_THAT(prove("echo ran"), StartsWith("proved before"));
  write("2");
  EXPECT_EQ(prove("echo ran"), "ran\n");
}

TEST_F(Proofs, AreRepeatedIfTheyFailedOrWereSkipped) {
  for (const char* command : {"echo ran; exit 1", "echo ran; exit 77"}) {
    EXPECT_EQ(prove(command), "ran\n");
    EXPECT_EQ(prove(command), "ran\n");
  }
}

TEST_F(Proofs, OfTheTreeCountInANewBuild) {
  EXPECT_EQ(prove("echo ran"), "ran\n");
  std::filesystem::rename(tree_.file("build/proved/model_x"), tree_.file("tests/proved.txt"));
  EXPECT_THAT(prove("echo ran"), StartsWith("proved before"));
}

}  // namespace
