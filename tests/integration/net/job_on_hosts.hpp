// SPDX-License-Identifier: Apache-2.0
// Tests of jobs on several hosts.
#pragma once

#include "tests/support/job_on_hosts.hpp"
#include "tests/support/pe.hpp"

namespace test_support {

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
