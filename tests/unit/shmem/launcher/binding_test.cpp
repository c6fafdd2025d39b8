// SPDX-License-Identifier: Apache-2.0
// The binding of PEs to processors, on machines that are made-up folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "shmem/launcher/binding.hpp"
#include "tests/support/process.hpp"

namespace shmem::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Two NUMA nodes with two cores of two threads each, in the usual order: CPUs 0-3 are the first threads of the cores,
/// 4-7 the second ones.
class TwoNodes : public ::testing::Test {
 protected:
  TwoNodes() {
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string siblings = std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4);
      write("cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus_list", siblings);
    }
    write("node/node0/cpulist", "0-1,4-5");
    write("node/node1/cpulist", "2-3,6-7");
    write("node/node2/cpulist", "");  // memory only
    write("node/online", "0-2");
  }
  void write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = dir_.file(name);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text << "\n";
  }
  [[nodiscard]] std::vector<std::string> map(Bind bind, const Cpus& allowed, int pes) const {
    const Binding binding(bind, allowed, dir_.path());
    std::vector<std::string> texts;
    texts.reserve(static_cast<std::size_t>(pes));
    for (int pe = 0; pe < pes; ++pe) {
      texts.push_back(binding.text(pe, pes));
    }
    return texts;
  }
  const Cpus all_{0, 1, 2, 3, 4, 5, 6, 7};
  test_support::TempDir dir_;
};

TEST_F(TwoNodes, LeavePesUnboundOnRequest) {
  const Binding binding(Bind::kNone, all_, dir_.path());
  EXPECT_FALSE(binding.is_bound());
  EXPECT_EQ(binding.text(1, 2), "not bound (CPUs 0-7, NUMA nodes 0, 1)");
}

TEST_F(TwoNodes, AssignCoresInTurn) {
  EXPECT_THAT(map(Bind::kCore, all_, 5),
              ElementsAre("bound to core 0 (CPUs 0, 4, NUMA node 0)", "bound to core 1 (CPUs 1, 5, NUMA node 0)",
                          "bound to core 2 (CPUs 2, 6, NUMA node 1)", "bound to core 3 (CPUs 3, 7, NUMA node 1)",
                          "bound to core 0 (CPUs 0, 4, NUMA node 0)"));
  EXPECT_EQ(Binding(Bind::kCore, all_, dir_.path()).processors(), 8);
}

TEST_F(TwoNodes, UseOnlyAllowedThreads) {
  EXPECT_THAT(map(Bind::kCore, {3, 4, 5, 7}, 3),
              ElementsAre("bound to core 0 (CPUs 3, 7, NUMA node 1)", "bound to core 1 (CPU 4, NUMA node 0)",
                          "bound to core 2 (CPU 5, NUMA node 0)"));
  EXPECT_THAT(map(Bind::kNuma, {0, 1}, 2),
              ElementsAre("bound to NUMA node 0 (CPUs 0, 1)", "bound to NUMA node 0 (CPUs 0, 1)"));
}

TEST_F(TwoNodes, AssignNodesToBlocksOfPes) {
  EXPECT_THAT(map(Bind::kNuma, all_, 3),
              ElementsAre("bound to NUMA node 0 (CPUs 0, 1, 4, 5)", "bound to NUMA node 0 (CPUs 0, 1, 4, 5)",
                          "bound to NUMA node 1 (CPUs 2, 3, 6, 7)"));
  EXPECT_EQ(map(Bind::kNuma, all_, 1).front(), "bound to NUMA node 0 (CPUs 0, 1, 4, 5)");
}

TEST(Binding, AssumesTheSimplestMachineWithoutInformation) {
  EXPECT_EQ(Binding(Bind::kCore, {2, 3}, "/nonexistent").text(1, 2), "bound to core 1 (CPU 3, NUMA node 0)");
  EXPECT_EQ(Binding(Bind::kNuma, {2, 3}, "/nonexistent").text(1, 2), "bound to NUMA node 0 (CPUs 2, 3)");
}

TEST(ParseCpus, ReadsTheFormatOfTheKernel) {
  EXPECT_THAT(*parse_cpus("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(*parse_cpus("5"), ElementsAre(5));
  EXPECT_THAT(*parse_cpus(""), IsEmpty());
  for (const char* text : {"x", "1-", "-1", "3-1", "0-99999999", "1,,2"}) {
    EXPECT_FALSE(parse_cpus(text)) << text;
  }
}

TEST(RunOn, BindsTheProcess) {
  const Cpus before = own_cpus().value();
  ASSERT_FALSE(before.empty());
  ASSERT_TRUE(run_on({before.back()}));
  EXPECT_THAT(own_cpus().value(), ElementsAre(before.back()));
  ASSERT_TRUE(run_on(before));
  EXPECT_EQ(own_cpus().value(), before);
}

}  // namespace
}  // namespace shmem::launcher
