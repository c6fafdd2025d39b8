// SPDX-License-Identifier: Apache-2.0
// scripts/install-deps.sh with fakes for the programs that it calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/stand_ins.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace {

using test_support::Outcome;
using test_support::run;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class InstallDeps : public testing::Test {
 protected:
  /// Installs a dpkg-query that finds every package except `missing`, and an apt-get that logs its arguments.
  void machine_without(const std::string& missing) {
    programs_.add("dpkg-query", R"(for a in "${@:3}"; do [[ $a == )" + missing + R"( ]] || echo "$a installed"; done)");
    programs_.add("apt-get", R"(echo "$*" >> )" + calls_path());
    programs_.add("id", "echo 0");
  }

  Outcome install(const std::vector<std::string>& arguments = {}, const std::string& rest_of_path = ":/usr/bin:/bin") {
    std::vector<std::string> command{"/bin/bash", GBA_SOURCE_DIR "/scripts/install-deps.sh"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command, {"PATH=" + programs_.path() + rest_of_path, "GBA_APT_RETRY_SECONDS=0"});
  }

  /// The names of a group's packages, separated by spaces.
  std::string packages(const std::vector<std::string>& groups) {
    std::vector<std::string> arguments{"--print"};
    arguments.insert(arguments.end(), groups.begin(), groups.end());
    return test_support::replace_all(install(arguments).output, "\n(?=.)", " ");
  }

  std::string calls() {
    std::ostringstream text;
    text << std::ifstream(calls_path()).rdbuf();
    return text.str();
  }

  std::string calls_path() { return programs_.path() + "/calls"; }

  StandIns programs_;
};

TEST_F(InstallDeps, DoesNothingIfAllPackagesAreInstalled) {
  machine_without("nothing");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, IsEmpty());
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(InstallDeps, InstallsExactlyTheMissingPackages) {
  machine_without("libcli11-dev");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(calls(), HasSubstr(" update\n"));
  EXPECT_THAT(calls(), HasSubstr(" install --no-install-recommends libcli11-dev\n"));
}

TEST_F(InstallDeps, SaysWhatItInstallsBeforeItDoes) {
  machine_without("openmpi-bin");
  programs_.add("apt-get", "echo apt-get");
  EXPECT_THAT(install({"build", "demo"}).output,
              StartsWith("Installing with apt-get, for build demo: openmpi-bin\napt-get\n"));
}

TEST_F(InstallDeps, InstallsNothingOfOtherGroups) {
  for (const char* package : {"clang", "debootstrap", "spin", "valgrind", "libgtest-dev", "libucx-dev"}) {
    machine_without(package);
    EXPECT_THAT(install({"build", "demo"}).output, IsEmpty()) << package;
  }
  EXPECT_THAT(calls(), IsEmpty());
  machine_without("libgtest-dev");
  EXPECT_TRUE(install({"build", "test"}).exit.clean());
  EXPECT_THAT(calls(), EndsWith(" install --no-install-recommends libgtest-dev\n"));
}

TEST_F(InstallDeps, PrintsEachPackageOnce) {
  EXPECT_EQ(packages({"demo", "options"}),
            "libpmix-dev openmpi-bin libmicrohttpd-dev libmpich-dev libopenmpi-dev "
            "libucx-dev pybind11-dev python3-dev python3-numpy\n");
}

TEST_F(InstallDeps, HasWhatReadmeNeedsWithoutAGroupAndPyTorchWithThat) {
  EXPECT_EQ(packages({}), packages({"build", "options", "demo"}));
  EXPECT_EQ(packages({"torch"}), test_support::replace_all(packages({}), "\n", " ") + "libtorch-dev python3-torch\n");
}

TEST_F(InstallDeps, TakesLibFuzzerOfTheReleasesClang) {
  programs_.add("dpkg-query", "exit 1");
  programs_.add("apt-cache", R"sh([[ "$*" == "show clang" ]] && echo "Depends: clang-19 (>= 19~)")sh");
  EXPECT_THAT(packages({"test"}), HasSubstr(" libclang-rt-19-dev "));
  programs_.add("dpkg-query", R"sh([[ "$*" == *Depends*clang ]] && echo "clang-14 (>= 14~)")sh");
  EXPECT_THAT(packages({"test"}), HasSubstr(" libclang-rt-14-dev "));
}

TEST_F(InstallDeps, AreDocumentedByName) {
  const std::string page = test_support::manual(GBA_SOURCE_DIR "/docs/install.md");
  for (const auto& groups : std::vector<std::vector<std::string>>{{"build"}, {"options"}}) {
    EXPECT_THAT(page, HasSubstr("$ sudo apt install " + packages(groups)));
  }
}

TEST_F(InstallDeps, TriesAnUpdateASecondTime) {
  machine_without("libfmt-dev");
  programs_.add("apt-get",
                R"(echo "$*" >> )" + calls_path() + "; [[ $* != *update || $(wc -l < " + calls_path() + ") -gt 1 ]]");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(calls(), HasSubstr(" install "));
}

TEST_F(InstallDeps, GivesUpAfterTheSecondFailedUpdate) {
  machine_without("libfmt-dev");
  programs_.add("apt-get", R"(echo "$*" >> )" + calls_path() + "; exit 100");
  const auto outcome = install();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("apt-get update failed twice"));
  EXPECT_THAT(calls(), Not(HasSubstr("install")));
}

TEST_F(InstallDeps, UsesSudoIfItIsNotRoot) {
  machine_without("libfmt-dev");
  programs_.add("id", "echo 1000");
  programs_.add("sudo", R"(echo "sudo" >> )" + calls_path() + R"(; exec "$@")");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(calls(), HasSubstr("sudo\n"));
  EXPECT_THAT(calls(), HasSubstr(" libfmt-dev\n"));
}

TEST_F(InstallDeps, FailsWithAMessageWithoutApt) {
  programs_.add("dirname", R"(exec /usr/bin/dirname "$@")");
  const auto outcome = install({}, "");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("this is not a Debian system"));
  EXPECT_THAT(outcome.output, HasSubstr("contents of these packages: ccache cmake g++ "));
}

}  // namespace
