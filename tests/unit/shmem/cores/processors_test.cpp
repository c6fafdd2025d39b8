// SPDX-License-Identifier: Apache-2.0
// Which caches and sockets processors share, on machines that are made-up folders.
#include "shmem/cores/processors.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/support/process.hpp"

namespace shmem {
namespace {

/// /sys/devices/system of a machine.
class Machine {
 public:
  /// Caches of `each` processors, `caches` to a socket.
  Machine(int sockets, int caches, int each) {
    const int socket = caches * each;
    for (int cpu = 0; cpu < sockets * socket; ++cpu) {
      const std::string folder = "cpu/cpu" + std::to_string(cpu);
      write(folder + "/cache/index0/level", "1");
      write(folder + "/cache/index0/shared_cpu_list", std::to_string(cpu));
      write(folder + "/cache/index1/level", "1");
      write(folder + "/cache/index1/shared_cpu_list", std::to_string(cpu));
      write(folder + "/cache/index2/level", "3");
      write(folder + "/cache/index2/shared_cpu_list", range(cpu / each * each, each));
      write(folder + "/topology/package_cpus_list", range(cpu / socket * socket, socket));
    }
  }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = dir_.file(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  void rename(const std::string& from, const std::string& to) const {
    std::filesystem::rename(dir_.file(from), dir_.file(to));
  }
  void remove(const std::string& name) const { std::filesystem::remove_all(dir_.file(name)); }
  [[nodiscard]] CpuLocation of(const Cpus& cpus) const { return locate(cpus, dir_.path()); }

 private:
  static std::string range(int first, int size) {
    return std::to_string(first) + "-" + std::to_string(first + size - 1);
  }
  test_support::TempDir dir_;
};

Cpus from(int first, int size) {
  Cpus cpus(static_cast<std::size_t>(size));
  std::iota(cpus.begin(), cpus.end(), first);
  return cpus;
}

TEST(CpuLocation, OfOneSocketWithOneCacheIsTheSameForAll) {
  const Machine machine(1, 1, 8);
  EXPECT_EQ(machine.of({0}), (CpuLocation{1, 1}));
  EXPECT_EQ(machine.of({7}), machine.of({0}));
  EXPECT_EQ(machine.of(from(0, 8)), machine.of({0}));
}

TEST(CpuLocation, DistinguishesTwoSockets) {
  const Machine machine(2, 1, 4);
  EXPECT_EQ(machine.of({3}), machine.of({0}));
  EXPECT_EQ(machine.of({4}), (CpuLocation{5, 5}));
  EXPECT_EQ(machine.of({4, 7}), machine.of({4}));
  EXPECT_EQ(machine.of({3, 4}), CpuLocation{}) << "a PE that may run on both is on neither";
}

TEST(CpuLocation, DistinguishesTheCachesOfChiplets) {
  const Machine machine(1, 8, 4);
  for (int cpu = 0; cpu < 32; ++cpu) {
    EXPECT_EQ(machine.of({cpu}), (CpuLocation{cpu / 4 * 4 + 1, 1}));
  }
  EXPECT_EQ(machine.of(from(0, 8)), (CpuLocation{0, 1})) << "two caches of one socket";
}

TEST(CpuLocation, IsUnknownWhereTheSystemDoesNotTell) {
  EXPECT_EQ(locate({0, 1}, "/nonexistent"), CpuLocation{});
  EXPECT_EQ(Machine(1, 1, 2).of({}), CpuLocation{});
  const Machine machine(2, 1, 4);
  machine.remove("cpu/cpu0/topology");
  machine.remove("cpu/cpu4/cache");
  EXPECT_EQ(machine.of({0}), (CpuLocation{1, 0}));
  EXPECT_EQ(machine.of({4}), (CpuLocation{0, 5}));
  machine.write("cpu/cpu1/cache/index2/shared_cpu_list", "nonsense");
  EXPECT_EQ(machine.of({1}).cache, 2) << "the largest cache that is known: its own";
  machine.write("cpu/cpu2/topology/package_cpus_list", "");
  EXPECT_EQ(machine.of({2}).socket, 0);
}

TEST(CpuLocation, ReadsTheNamesOfOlderKernels) {
  const Machine machine(2, 1, 4);
  machine.rename("cpu/cpu5/topology/package_cpus_list", "cpu/cpu5/topology/core_siblings_list");
  EXPECT_EQ(machine.of({5}).socket, 5);
}

}  // namespace
}  // namespace shmem
