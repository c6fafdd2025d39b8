// SPDX-License-Identifier: Apache-2.0
// A group whose members are processes.
#pragma once

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/integration/driver/fixture.hpp"

namespace driver_test {

class BarrierTest : public FakeDevice {
 protected:
  using FakeDevice::FakeDevice;
  /// An enabled group and its members, each a process that has joined.
  void start_members(std::uint32_t count, const Run& run, std::uint64_t sequence = 0) {
    owner_ = open();
    handle_ = alloc(owner_.get(), count, sequence);
    ASSERT_EQ(gba_group_enable(owner_.get(), &handle_), 0) << gba_error_text();
    for (std::uint32_t m = 0; m < count; ++m) {
      // Only the last member may hold.
      Run mine = run;
      if (m + 1 < count) {
        mine.hold_at = 0;
      }
      add_member(handle_, m, mine);
    }
  }
  void expect_all_done() {
    for (std::size_t m = 0; m < member_count(); ++m) {
      EXPECT_TRUE(member(m).wait_for_output("done", kLimit)) << m << ": " << member(m).output();
    }
  }
  void expect_failures(std::size_t count, const std::string& text) {
    for (std::size_t m = 0; m < count; ++m) {
      const auto exit = member(m).wait(kLimit);
      ASSERT_TRUE(exit) << m << ": " << member(m).output();
      EXPECT_EQ(exit->code, 3) << m << ": " << member(m).output();
      EXPECT_THAT(member(m).output(), testing::HasSubstr(text)) << m;
    }
  }

  DevicePointer owner_;
  gba_group_handle handle_{};
};

}  // namespace driver_test
