// SPDX-License-Identifier: Apache-2.0
// libgba with gba-fake-device: opening, groups, and the calls that are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "gba/gba.h"
#include "tests/integration/driver/fixture.hpp"
#include "tests/support/soak.hpp"
#include "uapi/gba_regs.h"

namespace driver_test {
namespace {

using testing::HasSubstr;

class OpenTest : public DeviceTest {
 protected:
  static int open_error(const std::string& path) {
    gba_device* device = nullptr;
    const int error = gba_open(path.c_str(), &device);
    EXPECT_EQ(device == nullptr, error != 0);
    gba_close(device);
    return error;
  }
};

TEST_F(OpenTest, InfoDescribesTheOpenDevice) {
  const auto device = open();
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(device.get(), &info), 0);
  EXPECT_STREQ(info.backend, "vfio-user");
  EXPECT_EQ(info.path, "vfio-user:" + path());
  EXPECT_EQ(info.version >> 16, GBA_VERSION_MAJOR);
  EXPECT_EQ(info.groups, 32U);
  EXPECT_EQ(info.members, 708U);
  EXPECT_EQ(info.is_process, 1U);
}

TEST_F(OpenTest, SecondOpenInAProcessIsTheSamePort) {
  const auto one = open();
  gba_device* second = nullptr;
  ASSERT_EQ(gba_open(("vfio-user:" + path()).c_str(), &second), 0);
  const DevicePointer two(second);
  const auto handle = alloc(one.get(), 1);
  EXPECT_EQ(gba_group_enable(two.get(), &handle), 0) << gba_error_text();
}

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

TEST_F(OpenTest, ManyConnectionsLeaveNothingOpen) {
  const std::size_t before = open_files();
  for (int i = 0; i < test_support::repeats(1000, 10000); ++i) {
    const auto device = open();
    ASSERT_NE(device, nullptr) << i;
    if (i % 8 != 0) {
      continue;
    }
    const auto handle = alloc(device.get(), 1);
    ASSERT_NE(join(device.get(), handle, 0), nullptr) << i;
  }
  EXPECT_EQ(open_files(), before);
}

TEST_F(OpenTest, UsesGbaDeviceWithoutAnArgument) {
  ::setenv("GBA_DEVICE", path().c_str(), 1);
  gba_device* device = nullptr;
  EXPECT_EQ(gba_open(nullptr, &device), 0) << gba_error_text();
  gba_close(device);
  ::unsetenv("GBA_DEVICE");
}

TEST_F(OpenTest, BadPathsAreNamed) {
  EXPECT_EQ(open_error(dir().file("none")), -ENODEV);
  EXPECT_THAT(gba_error_text(), HasSubstr(dir().file("none")));
  EXPECT_EQ(open_error(dir().path()), -EINVAL);
  EXPECT_EQ(open_error("vfio-user:"), -EINVAL);
}

TEST_F(OpenTest, DeadSocketIsNamedWithAHint) {
  kill_device();
  EXPECT_EQ(open_error(path()), -ECONNREFUSED);
  EXPECT_EQ(std::string(gba_error_text()), "gba: cannot open vfio-user:" + path() +
                                               ": connection refused (is gba-fake-device running on that socket?)");
}

TEST_F(OpenTest, DeviceWithAnotherPciIdIsNotAGba) {
  ::setenv("GBA_PCI_ID", "8086:1234", 1);
  EXPECT_EQ(open_error(path()), -ENODEV);
  EXPECT_THAT(gba_error_text(), HasSubstr("is not a GBA: its PCI id is 1eaf:0b01, not 8086:1234"));
  ::setenv("GBA_PCI_ID", "rubbish", 1);
  EXPECT_EQ(open_error(path()), -EINVAL);
  ::unsetenv("GBA_PCI_ID");
}

class OnePortTest : public DeviceTest {
 protected:
  OnePortTest() : DeviceTest({"--ports", "1"}) {}
};

TEST_F(OnePortTest, DeviceWithoutAFreePortIsBusy) {
  const auto mine = open();
  const gba_group_handle unused{.group = 0, .key = 0, .member_count = 1, .reserved = 0, .sequence = 0};
  Process& other = add_member(unused, 0, {});
  ASSERT_TRUE(other.wait(kLimit));
  EXPECT_THAT(other.output(),
              HasSubstr("failed open 16 gba: cannot open vfio-user:" + path() + ": it has no free port"));
}

class WithoutLimit : public DeviceTest {
 protected:
  WithoutLimit() : DeviceTest({"--group-limit", "32"}) {}
};

TEST_F(WithoutLimit, Group33IsRefused) {
  const auto device = open();
  for (int i = 0; i < 32; ++i) {
    (void)alloc(device.get(), 1);
  }
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device.get(), 1, 0, &handle), -ENOSPC);
  EXPECT_THAT(gba_error_text(), HasSubstr("cannot allocate a group: all groups of the device are taken"));
}

TEST_F(OpenTest, AProcessGetsAQuarterOfTheGroups) {
  const auto device = open();
  for (int i = 0; i < 8; ++i) {
    (void)alloc(device.get(), 1);
  }
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device.get(), 1, 0, &handle), -EDQUOT);
  EXPECT_THAT(gba_error_text(), HasSubstr("cannot allocate a group: this port has as many groups as it may have"));
}

TEST_F(OpenTest, FreedGroupsCanBeAllocatedAgain) {
  const auto device = open();
  for (int i = 0; i < 100; ++i) {
    const auto handle = alloc(device.get(), 2);
    ASSERT_EQ(gba_group_free(device.get(), &handle), 0) << gba_error_text();
  }
}

TEST_F(OpenTest, Member709IsRefused) {
  const auto device = open();
  gba_group_handle handle{};
  EXPECT_EQ(gba_group_alloc(device.get(), 709, 0, &handle), -EINVAL);
  const auto full = alloc(device.get(), 708);
  gba_group* group = nullptr;
  EXPECT_EQ(gba_group_join(device.get(), &full, 708, &group), -EINVAL);
  EXPECT_EQ(group, nullptr);
  EXPECT_THAT(gba_error_text(), HasSubstr("as member 708: it has members 0 to 707"));
  (void)join(device.get(), full, 707);
}

TEST_F(OpenTest, WrongKeyIsRefusedAndSixteenLockThePortOut) {
  const auto device = open();
  const auto handle = alloc(device.get(), 2);
  gba_group_handle wrong = handle;
  wrong.key ^= 1;
  gba_group* group = nullptr;
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(gba_group_join(device.get(), &wrong, 0, &group), -EACCES);
  }
  EXPECT_THAT(gba_error_text(), HasSubstr("the key is wrong"));
  EXPECT_EQ(gba_group_join(device.get(), &handle, 0, &group), -EACCES);
  EXPECT_THAT(gba_error_text(), HasSubstr("locked out"));
}

TEST_F(OpenTest, UnknownGroupsAndTakenMemberNumbersAreRefused) {
  const auto device = open();
  const gba_group_handle nowhere{.group = 9, .key = 1, .member_count = 2, .reserved = 0, .sequence = 0};
  gba_group* group = nullptr;
  EXPECT_EQ(gba_group_join(device.get(), &nowhere, 0, &group), -ENOENT);
  EXPECT_LT(gba_group_free(device.get(), &nowhere), 0);
  EXPECT_EQ(gba_group_enable(device.get(), &nowhere), -EPERM);

  const auto handle = alloc(device.get(), 2);
  const auto mine = join(device.get(), handle, 0);
  EXPECT_EQ(gba_group_join(device.get(), &handle, 1, &group), -EALREADY);
  Process& other = add_member(handle, 0, {});
  ASSERT_TRUE(other.wait(kLimit));
  EXPECT_THAT(other.output(), HasSubstr("failed join 98"));
}

TEST_F(OpenTest, OneMemberGroupRunsBarriersAndCountsThem) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1, (std::uint64_t{1} << 32) - 3);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto group = join(device.get(), handle, 0);
  for (std::uint64_t k = handle.sequence + 1; k <= handle.sequence + 1000; ++k) {
    EXPECT_EQ(gba_group_test(group.get(), k), -EAGAIN);
    gba_group_arrive(group.get(), k);
    ASSERT_EQ(gba_group_wait(group.get(), k, GBA_WAIT_FOREVER), 0) << gba_error_text();
    EXPECT_EQ(gba_group_test(group.get(), k), 0);
  }
  gba_device_counters counters{};
  ASSERT_EQ(gba_device_get_counters(device.get(), &counters), 0);
  EXPECT_EQ(counters.releases, 1000U);
  EXPECT_GE(counters.arrivals, 1000U);
  EXPECT_EQ(counters.rejected, 0U);
  EXPECT_EQ(counters.errors, 0U);
}

TEST_F(OpenTest, DisabledGroupIsLeftWithoutAnError) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  auto group = join(device.get(), handle, 0);
  gba_group_arrive(group.get(), 1);
  ASSERT_EQ(gba_group_wait(group.get(), 1, GBA_WAIT_FOREVER), 0) << gba_error_text();
  EXPECT_EQ(gba_group_disable(device.get(), &handle), 0) << gba_error_text();
  EXPECT_EQ(gba_group_leave(group.release()), 0) << gba_error_text();
  EXPECT_EQ(gba_group_free(device.get(), &handle), 0) << gba_error_text();
  gba_device_counters counters{};
  ASSERT_EQ(gba_device_get_counters(device.get(), &counters), 0);
  EXPECT_EQ(counters.errors, 0U);
}

TEST_F(OpenTest, RejoinedMembersNeverSeeAnOldRelease) {
  const auto device = open();
  for (int i = 0; i < 200; ++i) {
    const auto handle = alloc(device.get(), 1);
    ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
    auto group = join(device.get(), handle, 0);
    ASSERT_EQ(gba_group_test(group.get(), 1), -EAGAIN) << i;
    gba_group_arrive(group.get(), 1);
    ASSERT_EQ(gba_group_wait(group.get(), 1, GBA_WAIT_FOREVER), 0) << gba_error_text();
    group.reset();
    ASSERT_EQ(gba_group_free(device.get(), &handle), 0) << gba_error_text();
  }
}

TEST_F(OpenTest, GroupsOfOnePortDoNotDisturbEachOther) {
  const auto device = open();
  std::vector<GroupPointer> groups;
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto handle = alloc(device.get(), 1, std::uint64_t{10} * i);
    ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
    groups.push_back(join(device.get(), handle, 0));
  }
  for (std::uint64_t i = 0; i < groups.size(); ++i) {
    threads.emplace_back([group = groups[i].get(), first = 10 * i + 1] {
      for (std::uint64_t k = first; k < first + 200; ++k) {
        gba_group_arrive(group, k);
        EXPECT_EQ(gba_group_wait(group, k, GBA_WAIT_FOREVER), 0) << gba_error_text();
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace driver_test
