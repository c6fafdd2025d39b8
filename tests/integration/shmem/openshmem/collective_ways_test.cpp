// SPDX-License-Identifier: Apache-2.0
// Every collective, each of the ways that SHMEM_COLLECTIVE_TUNING can choose.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

class CollectiveWays : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CollectiveWays, DoTheSame) {
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

/// How PEs are spread over nodes: blocks of so many, or so many nodes by turns.
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

TEST_P(CollectivesOnNodes, DoTheSame) {
  const auto [node, pes] = GetParam();
  expect_clean_on_nodes(node, pes, "openshmem_collective_c_pes");
}

// The blocks of PEs that take turns are not in the order of the PEs on any node.
TEST(LargeCollects, NeedNoSecondCopyOfTheResult) {
  if (test_support::kSanitized) {
    GTEST_SKIP() << "a sanitizer's memory does not fit into the limit";
  }
  expect_clean_on_nodes("% 2", 4, "large_collect_pes");
}

// As a host file that names a node twice places them: PEs 0, 1, 4, 5 and 2, 3.
TEST(UnevenNodes, HaveSeveralTeamsOfPesThatShareMemory) {
  expect_clean_on_nodes("/ 2 % 2", 6, "openshmem_team_c_pes");
}

// One on each; 2 + 1; 3 + 1; 2 + 2; 3 + 2 that take turns; 3 + 2, not evenly spaced.
INSTANTIATE_TEST_SUITE_P(All, CollectivesOnNodes,
                         testing::Values(std::tuple("/ 1", 3), std::tuple("/ 2", 3), std::tuple("/ 3", 4),
                                         std::tuple("/ 2", 4), std::tuple("% 2", 5), std::tuple("/ 2 % 2", 5)));

}  // namespace
