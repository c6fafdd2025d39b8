// SPDX-License-Identifier: Apache-2.0
// A group whose members are processes.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/integration/driver/fixture.hpp"

namespace driver_test {

class BarrierTest : public DeviceTest {
 protected:
  using DeviceTest::DeviceTest;
  /// An enabled group and its members, each a process that has joined.
  void start_members(std::uint32_t count, const Run& run, std::uint64_t sequence = 0);
  void expect_all_done();
  void expect_failures(std::size_t count, const std::string& text);

  DevicePointer owner_;
  gba_group_handle handle_{};
};

}  // namespace driver_test
