// SPDX-License-Identifier: Apache-2.0
// Each test has its own gba-fake-device, and each member its own process.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "gba/gba.h"
#include "tests/support/process.hpp"

namespace driver_test {

using test_support::Process;
using test_support::Seconds;

/// Generous: a test must end, not be fast.
constexpr Seconds kLimit{300};

struct CloseDevice {
  void operator()(gba_device* device) const { gba_close(device); }
};
using DevicePointer = std::unique_ptr<gba_device, CloseDevice>;
struct LeaveGroup {
  void operator()(gba_group* group) const { gba_group_leave(group); }
};
using GroupPointer = std::unique_ptr<gba_group, LeaveGroup>;

class FakeDevice : public testing::Test {
 protected:
  explicit FakeDevice(const std::vector<std::string>& options = {}) { start(options); }

  void start(const std::vector<std::string>& options = {}) {
    std::vector<std::string> line{test_support::program("gba-fake-device"), "--socket", path()};
    line.insert(line.end(), options.begin(), options.end());
    process_ = std::make_unique<Process>(line);
    if (!process_->wait_for_output("ready on", kLimit)) {
      throw std::runtime_error("gba-fake-device is not ready: " + process_->output());
    }
  }
  void kill_device() {
    process_->signal(SIGKILL);
    ASSERT_TRUE(process_->wait(kLimit));
  }

  [[nodiscard]] std::string path() const { return dir_.file("gba.sock"); }
  [[nodiscard]] const test_support::TempDir& dir() const { return dir_; }
  Process& process() { return *process_; }

  DevicePointer open() {
    gba_device* device = nullptr;
    const int error = gba_open(path().c_str(), &device);
    EXPECT_EQ(error, 0) << gba_error_text();
    return DevicePointer(device);
  }
  static gba_group_handle alloc(gba_device* device, std::uint32_t members, std::uint64_t sequence = 0) {
    gba_group_handle handle{};
    EXPECT_EQ(gba_group_alloc(device, members, sequence, &handle), 0) << gba_error_text();
    return handle;
  }
  static GroupPointer join(gba_device* device, const gba_group_handle& handle, std::uint32_t member) {
    gba_group* group = nullptr;
    EXPECT_EQ(gba_group_join(device, &handle, member, &group), 0) << gba_error_text();
    return GroupPointer(group);
  }

  /// Creates the file of words that the members share.
  std::string shared_words(std::uint32_t members) {
    std::string name = dir_.file("words");
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(::ftruncate(fd, off_t{8} * members), 0);
    ::close(fd);
    return name;
  }

  struct Run {
    std::uint64_t rounds = 0;
    std::uint64_t wait_ms = 60'000;
    std::uint64_t hold_at = 0;
  };
  Process& add_member(const gba_group_handle& handle, std::uint32_t member, const Run& run) {
    members_.push_back(std::make_unique<Process>(std::vector<std::string>{
        test_support::test_program("driver_member"), path(), std::to_string(handle.group), std::to_string(handle.key),
        std::to_string(handle.member_count), std::to_string(handle.sequence), std::to_string(member),
        std::to_string(handle.sequence + 1), std::to_string(handle.sequence + run.rounds),
        shared_words(handle.member_count), std::to_string(run.wait_ms), std::to_string(run.hold_at)}));
    return *members_.back();
  }
  Process& member(std::size_t index) { return *members_.at(index); }
  [[nodiscard]] std::size_t member_count() const { return members_.size(); }

 private:
  test_support::TempDir dir_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<Process>> members_;
};

}  // namespace driver_test
