// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/cpu_quota.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/process.hpp"

namespace {

using shmem::cpu_quota;

/// A made-up file system with control groups.
class CpuQuota : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  /// A group of version 2, as systemd mounts it.
  void unified(const std::string& group, const std::string& top = "/") const {
    write("/proc/self/cgroup", "0::" + group);
    write("/proc/self/mountinfo",
          "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
          "31 22 0:28 " +
              top + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate");
  }
  /// A group of version 1, with one file system per controller.
  void separate(const std::string& group, const std::string& top = "/") const {
    write("/proc/self/cgroup", "5:memory:/elsewhere\n4:cpu,cpuacct:" + group + "\n0::/");
    write("/proc/self/mountinfo",
          "33 22 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "32 22 0:29 " +
              top + " /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct");
  }
  [[nodiscard]] std::uint64_t thousandths() const {
    const auto quota = cpu_quota(root_.path());
    return quota ? quota->thousandths : 0;
  }

  test_support::TempDir root_;
};

TEST_F(CpuQuota, IsNoneWithoutControlGroups) {
  EXPECT_FALSE(cpu_quota(root_.path()));
  write("/proc/self/cgroup", "");
  write("/proc/self/mountinfo", "nonsense\n\n - \n1 2 - cgroup2");
  EXPECT_FALSE(cpu_quota(root_.path()));
}

TEST_F(CpuQuota, ComesFromTheGroupOfTheProcess) {
  unified("/user.slice/job");
  EXPECT_FALSE(cpu_quota(root_.path()));
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000");
  EXPECT_FALSE(cpu_quota(root_.path()));
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "250000 100000");
  EXPECT_EQ(thousandths(), 2500U);
  write("/sys/fs/cgroup/user.slice/job/cpu.max", "50000 0");
  EXPECT_FALSE(cpu_quota(root_.path()));
}

TEST_F(CpuQuota, IsTheSmallestOnTheWayToTheRoot) {
  unified("/a/b/c");
  write("/sys/fs/cgroup/a/b/c/cpu.max", "400000 100000");
  write("/sys/fs/cgroup/a/cpu.max", "150000 100000");
  write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  write("/sys/fs/cgroup/other/cpu.max", "1000 100000");
  EXPECT_EQ(thousandths(), 1500U);
  write("/sys/fs/cgroup/cpu.max", "100000 100000");  // as a container sees its own group
  EXPECT_EQ(thousandths(), 1000U);
}

TEST_F(CpuQuota, WorksWithVersion1) {
  separate("/docker/1234");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/1234/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/1234/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(cpu_quota(root_.path()));
  write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "75000");
  write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "50000");
  EXPECT_EQ(thousandths(), 1500U);
}

TEST_F(CpuQuota, IsFoundIfAContainerSeesItsGroupAsTheRoot) {
  separate("/docker/1234/inner", "/docker/1234");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000");
  write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(thousandths(), 2000U);
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_quota_us", "100000");
  write("/sys/fs/cgroup/cpu,cpuacct/inner/cpu.cfs_period_us", "100000");
  EXPECT_EQ(thousandths(), 1000U);
  separate("/../elsewhere", "/docker/1234");  // not below the mount
  EXPECT_EQ(thousandths(), 2000U);
}

TEST_F(CpuQuota, ReadsMountPointsWithBlanks) {
  write("/proc/self/cgroup", "0::/g");
  write("/proc/self/mountinfo", "31 22 0:28 / /odd\\040place rw - cgroup2 none rw");
  write("/odd place/g/cpu.max", "300000 100000");
  EXPECT_EQ(thousandths(), 3000U);
}

TEST_F(CpuQuota, TellsWhichGroupsShareIt) {
  unified("/a/one");
  write("/sys/fs/cgroup/a/cpu.max", "200000 100000");
  write("/sys/fs/cgroup/a/one/cpu.max", "max 100000");
  write("/sys/fs/cgroup/a/two/cpu.max", "100000 100000");
  const auto one = cpu_quota(root_.path());
  unified("/a");
  EXPECT_EQ(cpu_quota(root_.path()), one);
  unified("/a/two");
  const auto two = cpu_quota(root_.path());
  ASSERT_TRUE(one && two);
  EXPECT_NE(two->group, one->group);
}

TEST_F(CpuQuota, SaysHowOftenTheGroupsWereThrottled) {
  EXPECT_EQ(shmem::times_throttled(root_.path()), 0U);
  unified("/a/b");
  EXPECT_EQ(shmem::times_throttled(root_.path()), 0U);
  write("/sys/fs/cgroup/a/b/cpu.stat", "usage_usec 12\nnr_periods 9\nnr_throttled 3\nthrottled_usec 5");
  write("/sys/fs/cgroup/a/cpu.stat", "nr_throttled 4");
  write("/sys/fs/cgroup/other/cpu.stat", "nr_throttled 100");
  EXPECT_EQ(shmem::times_throttled(root_.path()), 7U);
}

TEST(CpuQuotaOfThisMachine, CanBeRead) {
  const auto quota = cpu_quota();
  EXPECT_TRUE(!quota || quota->thousandths > 0);
}

}  // namespace
