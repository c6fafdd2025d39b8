// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/memory_kills.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/process.hpp"

namespace {

using shmem::launcher::MemoryKills;

/// A made-up file system with control groups.
class MemoryKillsIn : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << '\n';
  }
  void unified() const {
    write("/proc/self/cgroup", "0::/slurm/job");
    write("/proc/self/mountinfo", "31 22 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate");
  }
  void separate() const {
    write("/proc/self/cgroup", "4:cpu,cpuacct:/elsewhere\n5:memory:/slurm/job\n0::/");
    write("/proc/self/mountinfo",
          "33 22 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
          "34 22 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw");
  }
  static std::string events(int limits, int kills) {
    return "low 0\nhigh 0\nmax 9\noom " + std::to_string(limits) + "\noom_kill " + std::to_string(kills);
  }

  test_support::TempDir root_;
};

TEST_F(MemoryKillsIn, AGroupWithoutFilesAreUnknown) {
  EXPECT_EQ(MemoryKills(root_.path()).reason(), "");
  unified();
  EXPECT_EQ(MemoryKills(root_.path()).reason(), "");
}

TEST_F(MemoryKillsIn, TheGroupOfTheProcessNameItsLimit) {
  unified();
  write("/sys/fs/cgroup/slurm/job/memory.events", events(3, 3));
  write("/sys/fs/cgroup/slurm/memory.events", events(3, 3));
  write("/sys/fs/cgroup/slurm/job/memory.max", "536870912");
  const MemoryKills kills(root_.path());
  EXPECT_EQ(kills.reason(), "") << "earlier kills do not count";
  write("/sys/fs/cgroup/slurm/job/memory.events", events(4, 4));
  write("/sys/fs/cgroup/slurm/memory.events", events(4, 4));
  EXPECT_EQ(kills.reason(), "the memory limit of control group /slurm/job, 512 MiB");
}

TEST_F(MemoryKillsIn, AGroupAboveNameThatGroup) {
  unified();
  write("/sys/fs/cgroup/slurm/job/memory.events", events(0, 0));
  write("/sys/fs/cgroup/slurm/memory.events", events(0, 0));
  write("/sys/fs/cgroup/slurm/memory.max", "1073741824");
  const MemoryKills kills(root_.path());
  write("/sys/fs/cgroup/slurm/job/memory.events", events(0, 1));
  write("/sys/fs/cgroup/slurm/memory.events", events(1, 1));
  EXPECT_EQ(kills.reason(), "the memory limit of control group /slurm, 1 GiB");
}

TEST_F(MemoryKillsIn, AGroupBelowAreSeen) {
  unified();
  write("/sys/fs/cgroup/slurm/job/memory.events", events(0, 0));
  write("/sys/fs/cgroup/slurm/job/memory.max", "max");
  const MemoryKills kills(root_.path());
  write("/sys/fs/cgroup/slurm/job/memory.events", events(1, 1));
  EXPECT_EQ(kills.reason(), "the memory limit of control group /slurm/job or of one below it");
}

TEST_F(MemoryKillsIn, TheWholeMachineNameNoGroup) {
  unified();
  write("/sys/fs/cgroup/slurm/job/memory.events", events(0, 0));
  const MemoryKills kills(root_.path());
  write("/sys/fs/cgroup/slurm/job/memory.events", events(0, 1));
  EXPECT_EQ(kills.reason(), "the memory of this machine");
}

TEST_F(MemoryKillsIn, GroupsOfVersionOneNameTheLowestLimit) {
  separate();
  write("/sys/fs/cgroup/memory/slurm/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1");
  write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712");
  write("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2147483648");
  const MemoryKills kills(root_.path());
  EXPECT_EQ(kills.reason(), "");
  write("/sys/fs/cgroup/memory/slurm/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2");
  EXPECT_EQ(kills.reason(), "the memory limit of control group /slurm, 2 GiB");
}

}  // namespace
