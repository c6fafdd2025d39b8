// SPDX-License-Identifier: Apache-2.0
// Tests of jobs on several hosts.
#pragma once

#include "tests/support/job_on_hosts.hpp"
#include "tests/support/pe.hpp"

namespace test_support {

/// How the PEs of a job have ended.
struct Ended {
  std::vector<int> codes;
  std::vector<std::string> outputs;
};

inline Ended ended(const JobOnHosts& job) {
  Ended all{job.codes(), {}};
  for (std::size_t pe = 0; pe < job.size(); ++pe) {
    all.outputs.push_back(job.pe(pe).output());
  }
  return all;
}

/// Tests that need hosts.
class OnHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto missing = Hosts::missing()) {
      GTEST_SKIP() << *missing;
    }
  }
};

}  // namespace test_support
