// SPDX-License-Identifier: Apache-2.0
// A device with two members of a group who mind their own business.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/integration/fake_device/device_fixture.hpp"

namespace raw {

class Bystanders : public FakeDevice {
 protected:
  explicit Bystanders(const std::vector<std::string>& options = {})
      : FakeDevice(options), first_(path()), second_(path()), group_(first_.make_group(2)) {
    first_.join(group_, 0);
    second_.join(group_, 1);
    files_ = open_files();
  }

  /// Their barriers go on, and nothing else has happened to them.
  void expect_unharmed() {
    for (int round = 0; round < 3; ++round) {
      ++sequence_;
      first_.arrive(group_, 0, sequence_);
      second_.arrive(group_, 1, sequence_);
      ASSERT_EQ(first_.wait_flag(group_, sequence_ - 1), sequence_) << device().output();
      ASSERT_EQ(second_.wait_flag(group_, sequence_ - 1), sequence_) << device().output();
    }
    EXPECT_EQ(first_.read(GBA_REG_FAULT), 0U);
    EXPECT_EQ(second_.read(GBA_REG_FAULT), 0U);
  }

  /// The device has closed all that it had of others; it learns of their end a little later than they.
  void expect_no_files_left() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (open_files() > files_ && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_EQ(open_files(), files_);
  }

 private:
  Port first_;
  Port second_;
  Port::Group group_;
  std::uint64_t sequence_ = 0;
  std::size_t files_ = 0;
};

}  // namespace raw
