// SPDX-License-Identifier: Apache-2.0
// scripts/install-deps.sh with fakes for the programs that it calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/stand_ins.hpp"
#include "tests/support/process.hpp"

namespace {

using test_support::Outcome;
using test_support::run;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class InstallDeps : public testing::Test {
 protected:
  /// Installs a dpkg-query that finds every package except `missing`, and an apt-get that logs its arguments.
  void machine_without(const std::string& missing) {
    programs_.add("dpkg-query", R"(for a in "${@:3}"; do [[ $a == )" + missing + R"( ]] || echo "$a installed"; done)");
    programs_.add("apt-get", R"(echo "$*" >> )" + calls_path());
    programs_.add("id", "echo 0");
  }

  Outcome install(const std::string& rest_of_path = ":/usr/bin:/bin", const std::vector<std::string>& groups = {}) {
    std::vector<std::string> line{"/bin/bash", GBA_SOURCE_DIR "/scripts/install-deps.sh"};
    line.insert(line.end(), groups.begin(), groups.end());
    return run(line, {"PATH=" + programs_.path() + rest_of_path, "GBA_APT_RETRY_SECONDS=0"});
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

TEST_F(InstallDeps, InstallsOnlyWhatAGroupNeedsAndSaysSoBefore) {
  programs_.add("dpkg-query", "true");
  programs_.add("apt-get", R"(echo "apt-get $*"; echo "$*" >> )" + calls_path());
  programs_.add("id", "echo 0");
  const auto demo = install(":/usr/bin:/bin", {"demo"});
  EXPECT_TRUE(demo.exit.clean()) << demo.output;
  EXPECT_THAT(calls(), HasSubstr(" libcli11-dev "));
  for (const char* package : {"clang", "libgtest-dev", "valgrind", "libucx-dev", "debootstrap"}) {
    EXPECT_THAT(calls(), Not(HasSubstr(package)));
  }
  EXPECT_LT(demo.output.find("Installing with apt: cmake g++ "), demo.output.find("apt-get "));
  install(":/usr/bin:/bin", {"lint"});
  EXPECT_THAT(calls(), HasSubstr(" clang clang-format clang-tidy\n"));
  install();
  for (const char* package : {" clang-tidy ", " libgtest-dev ", " valgrind", " libucx-dev "}) {
    EXPECT_THAT(calls(), HasSubstr(package));
  }
}

TEST_F(InstallDeps, TriesAnUpdateASecondTime) {
  machine_without("ccache");
  programs_.add("apt-get",
                R"(echo "$*" >> )" + calls_path() + "; [[ $* != *update || $(wc -l < " + calls_path() + ") -gt 1 ]]");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(calls(), HasSubstr(" install "));
}

TEST_F(InstallDeps, GivesUpAfterTheSecondFailedUpdate) {
  machine_without("ccache");
  programs_.add("apt-get", R"(echo "$*" >> )" + calls_path() + "; exit 100");
  const auto outcome = install();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("apt-get update failed twice"));
  EXPECT_THAT(calls(), Not(HasSubstr("install")));
}

TEST_F(InstallDeps, UsesSudoIfItIsNotRoot) {
  machine_without("ccache");
  programs_.add("id", "echo 1000");
  programs_.add("sudo", R"(echo "sudo" >> )" + calls_path() + R"(; exec "$@")");
  const auto outcome = install();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(calls(), HasSubstr("sudo\n"));
  EXPECT_THAT(calls(), HasSubstr(" ccache\n"));
}

TEST_F(InstallDeps, FailsWithAMessageWithoutApt) {
  programs_.add("dirname", R"(exec /usr/bin/dirname "$@")");
  const auto outcome = install("");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("this is not a Debian system"));
}

}  // namespace
