// SPDX-License-Identifier: Apache-2.0
// Every collective by each algorithm that SHMEM_COLLECTIVE_TUNING can choose.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/network.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

class CollectiveWays : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CollectiveWays, GiveTheSameResults) {
  const auto [limits, pes] = GetParam();
  const test_support::TempDir folder;
  std::ofstream table(folder.file("table"));
  table << "libshmem-collective-tuning 1\n";
  for (const char* collective : {"broadcast", "collect", "fcollect", "alltoall", "reduce", "scan"}) {
    for (const char* load : {"alone", "oversubscribed"}) {
      table << collective << ' ' << load << " * " << limits << '\n';
    }
  }
  table.close();
  const auto job = run(oshrun(pes, "off", {test_program("openshmem_collective_c_pes"), "few"}),
                       {"SHMEM_COLLECTIVE_TUNING=" + folder.file("table")}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

// Eager calls are covered by the other tests: the built-in table prefers them.
INSTANTIATE_TEST_SUITE_P(All, CollectiveWays,
                         testing::Combine(testing::Values("eager=0", "eager=0 scatter-allgather=0",
                                                          "eager=8 scatter-allgather=9"),
                                          testing::Values(3)));

/// The placement of PEs on nodes: "/ N" puts N consecutive PEs on a node, "% N" deals them to N nodes in turn.
class CollectivesOnNodes : public testing::TestWithParam<std::tuple<std::string, int>> {};

void expect_clean_on_nodes(const std::string& node, int pes, const std::string& name) {
  const std::string script = "export SHMEM_HOST_ID=node$((OSHRUN_RANK " + node + R"()); exec "$0" "$@")";
  const auto job = run(oshrun(pes, "off", {"/bin/sh", "-c", script, test_program(name), "few"}),
                       {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}, Seconds{120});
  for (const char* reason : {"libucp.so.0 cannot be used", "built without UCX"}) {
    if (job.output.find(reason) != std::string::npos) {
      GTEST_SKIP() << reason;
    }
  }
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_P(CollectivesOnNodes, GiveTheSameResults) {
  const auto [node, pes] = GetParam();
  expect_clean_on_nodes(node, pes, "openshmem_collective_c_pes");
}

// If PEs are dealt to nodes in turn, the blocks of a node's PEs are not adjacent in the result.
TEST(LargeCollects, NeedNoSecondCopyOfTheResult) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "a sanitizer needs more memory than the limit";
  }
  if (test_support::ucx_sends_at_once()) {
    GTEST_SKIP() << "this version of UCX keeps messages that come early in memory of its own";
  }
  expect_clean_on_nodes("% 2", 4, "large_collect_pes");
}

struct Short {
  const char* call;
  const char* message;
};
class ShortOfMemory : public testing::TestWithParam<Short> {};

TEST_P(ShortOfMemory, IsAnErrorThatNamesTheSize) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "a sanitizer has operators of its own";
  }
  const std::string script = R"(export SHMEM_HOST_ID=node$((OSHRUN_RANK % 2)); exec "$0" "$@")";
  const auto job =
      run(oshrun(4, "off", {"/bin/sh", "-c", script, test_program("short_of_memory_pes"), GetParam().call}),
          {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}, Seconds{120});
  for (const char* reason : {"libucp.so.0 cannot be used", "built without UCX"}) {
    if (job.output.find(reason) != std::string::npos) {
      GTEST_SKIP() << reason;
    }
  }
  EXPECT_EQ(job.exit.code, 3) << job.output;
  EXPECT_NE(job.output.find(GetParam().message), std::string::npos) << job.output;
}

INSTANTIATE_TEST_SUITE_P(
    Calls, ShortOfMemory,
    testing::Values(Short{"alltoall", "there is no memory for the 65536 bytes in which the blocks"},
                    Short{"alltoalls", "there is no memory for the 65480 bytes of a block of another node's PE"},
                    Short{"scan", "there is no memory for the 163840 bytes in which a scan"},
                    Short{"fcollect", "there is no memory for the 131072 bytes that put"}),
    [](const auto& test) { return std::string(test.param.call); });

// PEs 0, 1, 4, 5 and 2, 3, as placed by a host file that names a node twice.
TEST(UnevenNodes, HaveSeveralTeamsOfPesThatShareMemory) {
  expect_clean_on_nodes("/ 2 % 2", 6, "openshmem_team_c_pes");
}

// PEs 3 and 6 are on another node, so PEs 0, 2 and 4 have the numbers 0, 2 and 3 on theirs.
TEST(UnevenNodes, HaveTeamsOfAnyEvenlySpacedPes) {
  const std::string node = "== 3 || OSHRUN_RANK == 6";
  expect_clean_on_nodes(node, 7, "openshmem_collective_c_pes");
  expect_clean_on_nodes(node, 7, "openshmem_team_c_pes");
}

// One PE per node; 2 + 1; 3 + 1; 2 + 2; 3 + 2 in turn; 3 + 2, not evenly spaced.
INSTANTIATE_TEST_SUITE_P(All, CollectivesOnNodes,
                         testing::Values(std::tuple("/ 1", 3), std::tuple("/ 2", 3), std::tuple("/ 3", 4),
                                         std::tuple("/ 2", 4), std::tuple("% 2", 5), std::tuple("/ 2 % 2", 5)));

}  // namespace
