// SPDX-License-Identifier: Apache-2.0
// Each test has its own gba-fake-device, and each member its own process.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gba/gba.h"
#include "tests/support/job.hpp"

namespace driver_test {

using test_support::Process;
using test_support::Seconds;

/// Generous: a test must end, not be fast.
constexpr Seconds kLimit{300};

/// What a header of gba/ declares.
std::set<std::string> functions_of(const std::string& header);

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
using DevicePointer = std::unique_ptr<gba_device, CloseDevice>;
struct LeaveGroup {
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using GroupPointer = std::unique_ptr<gba_group, LeaveGroup>;

class DeviceTest : public testing::Test {
 protected:
  explicit DeviceTest(const std::vector<std::string>& options = {}) : device_(options) {}

  [[nodiscard]] std::string path() const { return device_.socket(); }
  [[nodiscard]] const test_support::TempDir& dir() const { return device_.folder(); }
  Process& process() { return device_.process(); }
  /// Starts the device again, with the same options.
  void start() { device_.start(); }
  void kill_device() { device_.kill(); }

  DevicePointer open();
  static gba_group_handle alloc(gba_device* device, std::uint32_t members, std::uint64_t sequence = 0);
  static GroupPointer join(gba_device* device, const gba_group_handle& handle, std::uint32_t member);

  /// Creates the file of words that the members share.
  std::string shared_words(std::uint32_t members);

  struct Run {
    std::uint64_t rounds = 0;
    std::uint64_t wait_ms = 60'000;
    std::uint64_t hold_at = 0;
  };
  Process& add_member(const gba_group_handle& handle, std::uint32_t member, const Run& run);
  Process& member(std::size_t index) { return *members_.at(index); }
  [[nodiscard]] std::size_t member_count() const { return members_.size(); }

 private:
  test_support::FakeDevice device_;
  std::vector<std::unique_ptr<Process>> members_;
};

}  // namespace driver_test
