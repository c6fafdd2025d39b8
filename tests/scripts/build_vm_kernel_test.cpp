// SPDX-License-Identifier: Apache-2.0
// scripts/build-vm-kernel.sh with sources that are only a Makefile, and a fake make that builds nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/scripts/vm_cache.hpp"

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class BuildVmKernel : public VmCache {
 protected:
  BuildVmKernel() {
    programs_.add("dpkg-query", "echo install ok installed");
    apt_that(R"sh([[ $* != *download* ]] || touch source.deb)sh");
    programs_.add("dpkg-deb", R"sh(
      mkdir -p "$3/usr/src/linux-source-6.12" && cd "$3/usr/src" && touch linux-source-6.12/Makefile &&
      tar -cJf linux-source-6.12.tar.xz linux-source-6.12)sh");
    make_that("true");
  }

  /// Installs a make that logs its arguments, keeps the wanted configuration, and then runs `body`.
  void make_that(const std::string& body) {
    programs_.add("make", "echo \"make $*\" >> " + calls_path() + R"sh(
      cd "$2"
      case "$*" in
      *allnoconfig) file="${6#KCONFIG_ALLCONFIG=}"; cp "$file" .config ;;
      *bzImage) mkdir -p arch/x86/boot; echo kernel > arch/x86/boot/bzImage ;;
      esac
    )sh" + body);
  }

  test_support::Outcome build() { return run("build-vm-kernel.sh"); }
  test_support::Outcome check() { return run("build-vm-kernel.sh", {"--check"}); }
  [[nodiscard]] std::string kernel() const { return cache() + "/kernel-iommufd"; }
};

TEST_F(BuildVmKernel, PutsAKernelWithoutModulesIntoTheCacheOnce) {
  const auto first = build();
  EXPECT_TRUE(first.exit.clean()) << first.output;
  EXPECT_THAT(cached(), testing::UnorderedElementsAre("kernel-iommufd", "lock"));
  EXPECT_TRUE(std::filesystem::exists(kernel() + "/vmlinuz"));
  EXPECT_TRUE(std::filesystem::is_empty(kernel() + "/modules"));
  std::filesystem::remove(calls_path());
  const auto second = build();
  EXPECT_TRUE(second.exit.clean()) << second.output;
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(BuildVmKernel, RebuildsAKernelThatWasBuiltWithAnotherRecipe) {
  ASSERT_TRUE(build().exit.clean());
  std::ofstream(kernel() + "/recipe") << "linux-source-6.11 1 2\n";
  std::filesystem::remove(calls_path());
  EXPECT_TRUE(build().exit.clean());
  EXPECT_THAT(calls(), HasSubstr("bzImage"));
}

TEST_F(BuildVmKernel, ChecksWithoutBuilding) {
  const auto before = check();
  EXPECT_EQ(before.exit.code, 1);
  EXPECT_THAT(before.output, HasSubstr("scripts/build-vm-kernel.sh builds it"));
  EXPECT_FALSE(std::filesystem::exists(cache()));
  ASSERT_TRUE(build().exit.clean());
  EXPECT_TRUE(check().exit.clean());
  std::ofstream(kernel() + "/recipe") << "linux-source-6.11 1 2\n";
  EXPECT_EQ(check().exit.code, 1);
}

TEST_F(BuildVmKernel, NamesThePackagesThatAreMissing) {
  programs_.add("dpkg-query", R"sh([[ $* != *flex* && $* != *libelf-dev* ]] && echo install ok installed)sh");
  const auto outcome = build();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("apt-get install flex libelf-dev)"));
  EXPECT_THAT(cached(), ElementsAre("lock"));
}

TEST_F(BuildVmKernel, NamesTheOptionsThatTheSourcesDrop) {
  make_that(R"sh([[ $* != *allnoconfig ]] || sed -i '/CONFIG_IOMMUFD/d' .config)sh");
  const auto outcome = build();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("cannot have"));
  EXPECT_THAT(outcome.output, HasSubstr(": CONFIG_IOMMUFD=y\n"));
  EXPECT_THAT(calls(), Not(HasSubstr("bzImage")));
  EXPECT_THAT(cached(), ElementsAre("lock"));
}

TEST_F(BuildVmKernel, ShowsTheOutputOfMakeIfItFails) {
  make_that(R"sh([[ $* != *bzImage ]] || { echo "kernel/fork.c: error: no room"; exit 2; })sh");
  const auto outcome = build();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("kernel/fork.c: error: no room"));
  EXPECT_THAT(outcome.output, HasSubstr("cannot make bzImage"));
  EXPECT_THAT(cached(), ElementsAre("lock"));
}

TEST_F(BuildVmKernel, FailsWithAMessageOnAnotherArchitecture) {
  programs_.add("dpkg", "echo arm64");
  const auto outcome = build();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("only a Debian system on amd64"));
}

}  // namespace
