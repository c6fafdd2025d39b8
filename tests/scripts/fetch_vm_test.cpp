// SPDX-License-Identifier: Apache-2.0
// scripts/fetch-vm.sh with a fake apt that downloads nothing, or fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/scripts/vm_cache.hpp"
#include "tests/support/process.hpp"

namespace {

using test_support::Outcome;
using testing::HasSubstr;
using testing::IsEmpty;

class FetchVm : public VmCache {
 protected:
  FetchVm() { apt_that("true"); }

  /// Installs an apt whose packages are only names, and a dpkg-deb that unpacks them.
  void packages() {
    apt_that(R"sh(case "$*" in
      *install*) touch "$work/apt/cache/archives/qemu.deb" ;;
      *busybox*) touch busybox.deb ;;
      *download*udev/*) touch udev.deb ;;
      *download*kmod/*) touch kmod.deb ;;
      *download*liblzma5/*) touch liblzma.deb ;;
      *download*) touch kernel.deb ;;
      *madison*) echo "linux-image-amd64 | 6.1.1 | http://mirror.invalid/debian bookworm/main amd64 Packages" ;;
      *depends*) echo linux-image-6.1.1-amd64 ;;
      esac)sh");
    programs_.add("dpkg-deb", R"sh(case "$2" in
      *qemu*) file=usr/bin/qemu-system-x86_64 ;;
      *busybox*) file=bin/busybox ;;
      *udev*) file=bin/udevadm ;;
      *kmod*) file=bin/kmod ;;
      *liblzma*) file=lib/x86_64-linux-gnu/liblzma.so.5 ;;
      *kernel*) file=boot/vmlinuz-6.1.1; mkdir -p "$3/lib"; touch "$3/lib/vfio.ko" "$3/lib/vfio-pci.ko" ;;
      esac
      mkdir -p "$3/${file%/*}"; printf '#!/bin/sh\n' >"$3/$file"; chmod +x "$3/$file")sh");
  }

  Outcome fetch(const std::vector<std::string>& kernels = {}) { return run("fetch-vm.sh", kernels); }
};

TEST_F(FetchVm, FillsTheCacheOnce) {
  packages();
  const auto first = fetch();
  EXPECT_TRUE(first.exit.clean()) << first.output;
  EXPECT_THAT(cached(), testing::UnorderedElementsAre("busybox", "kernel-bookworm", "lock", "qemu", "udev"));
  EXPECT_TRUE(std::filesystem::exists(cache() + "/kernel-bookworm/vmlinuz"));
  EXPECT_TRUE(std::filesystem::exists(cache() + "/kernel-bookworm/modules/2-vfio.ko"));
  EXPECT_TRUE(std::filesystem::exists(cache() + "/kernel-bookworm/modules/6-vfio-pci.ko"));
  std::filesystem::remove(calls_path());
  const auto second = fetch();
  EXPECT_TRUE(second.exit.clean()) << second.output;
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(FetchVm, FetchesOnlyTheMissingKernel) {
  packages();
  ASSERT_TRUE(fetch().exit.clean());
  apt_that("exit 100");
  EXPECT_TRUE(fetch().exit.clean());
  const auto outcome = fetch({"bookworm", "trixie"});
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(cached(), testing::UnorderedElementsAre("busybox", "kernel-bookworm", "lock", "qemu", "udev"));
}

TEST_F(FetchVm, NamesThePackageThatIsNotAvailable) {
  apt_that(R"sh([[ $* == *update* ]] || { echo "E: Unable to locate package"; exit 100; })sh");
  const auto outcome = fetch();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("cannot fetch qemu-system-x86 of trixie-backports"));
  EXPECT_THAT(outcome.output, HasSubstr("E: Unable to locate package"));
  EXPECT_THAT(cached(), testing::ElementsAre("lock"));
}

TEST_F(FetchVm, NamesTheMirrorThatDoesNotAnswer) {
  apt_that(R"sh(echo "E: Failed to fetch"; exit 100)sh");
  const auto outcome = fetch();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("at http://mirror.invalid/debian/: E: Failed to fetch"));
}

TEST_F(FetchVm, FailsWithAMessageWithoutAMirror) {
  programs_.add("apt-get", "true");
  const auto outcome = fetch();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("name no Debian mirror"));
}

TEST_F(FetchVm, FailsWithAMessageOnAnotherArchitecture) {
  programs_.add("dpkg", "echo arm64");
  const auto outcome = fetch();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("only a Debian system on amd64"));
}

}  // namespace
