// SPDX-License-Identifier: Apache-2.0
// Every collective, each of the ways that SHMEM_COLLECTIVE_TUNING can choose.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/process.hpp"

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
    for (const char* load : {"alone", "crowded"}) {
      table << collective << ' ' << load << " * " << limits << '\n';
    }
  }
  table.close();
  const auto job = run(oshrun(pes, "off", {test_program("openshmem_collective_c_pes"), "few"}),
                       {"SHMEM_COLLECTIVE_TUNING=" + folder.file("table")}, Seconds{120});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

// What is carried where that is allowed is tested above: the built-in table does so.
INSTANTIATE_TEST_SUITE_P(All, CollectiveWays,
                         testing::Combine(testing::Values("carried=0", "carried=0 split=0", "carried=8 split=9"),
                                          testing::Values(3)));

/// How PEs are spread over nodes: blocks of so many, or so many nodes by turns.
class CollectivesOnNodes : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CollectivesOnNodes, DoTheSame) {
  const auto [node, pes] = GetParam();
  const std::string script = "export SHMEM_HOST_ID=node$((OSHRUN_RANK " + node + R"()); exec "$0" "$@")";
  const auto job = run(oshrun(pes, "off", {"/bin/sh", "-c", script, test_program("openshmem_collective_c_pes"), "few"}),
                       {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"}, Seconds{120});
  for (const char* reason : {"libucp.so.0 cannot be used", "built without UCX"}) {
    if (job.output.find(reason) != std::string::npos) GTEST_SKIP() << reason;
  }
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

// One on each; 2 + 1; 3 + 1; 2 + 2; 3 + 2 that take turns.
INSTANTIATE_TEST_SUITE_P(All, CollectivesOnNodes,
                         testing::Values(std::tuple("/ 1", 3), std::tuple("/ 2", 3), std::tuple("/ 3", 4),
                                         std::tuple("/ 2", 4), std::tuple("% 2", 5)));

}  // namespace
