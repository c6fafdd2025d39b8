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

}  // namespace
