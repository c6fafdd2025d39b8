// SPDX-License-Identifier: Apache-2.0
// Each test has its own fake device.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/job.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/vfio_user.h"

namespace raw {

// Flags of VFIO_USER_DEVICE_SET_IRQS.
constexpr auto kArm = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER;
constexpr auto kFire = VFIO_USER_IRQ_DATA_NONE | VFIO_USER_IRQ_ACTION_TRIGGER;

class DeviceTest : public ::testing::Test {
 protected:
  explicit DeviceTest(const std::vector<std::string>& options = {}, const std::vector<std::string>& launcher = {})
      : device_(logged(options), launcher) {}

  static std::vector<std::string> command_line(const std::string& socket,
                                               const std::vector<std::string>& options = {}) {
    return test_support::FakeDevice::command_line(socket, logged(options));
  }
  [[nodiscard]] std::string path() const { return device_.socket(); }
  [[nodiscard]] const test_support::TempDir& folder() const { return device_.folder(); }
  test_support::Process& device() { return device_.process(); }

  /// How often the device has gone to sleep in the kernel.
  [[nodiscard]] long context_switches() const { return status_value("voluntary_ctxt_switches:"); }
  /// The device sleeps in the kernel at this moment.
  [[nodiscard]] bool asleep() const;
  [[nodiscard]] long resident_kib() const { return status_value("VmRSS:"); }
  [[nodiscard]] std::size_t open_files() const { return entries("fd"); }
  /// How many it can have open before the kernel has to give it a larger table.
  [[nodiscard]] long file_table() const { return status_value("FDSize:"); }
  [[nodiscard]] std::size_t threads() const { return entries("task"); }
  /// Expects that the device soon has no more than `count` files open: a thread of its own closes them.
  void expect_files(std::size_t count) const;

 private:
  static std::vector<std::string> logged(std::vector<std::string> options);
  [[nodiscard]] std::string status_folder() const { return "/proc/" + std::to_string(device_.process().pid()) + "/"; }
  [[nodiscard]] std::size_t entries(const std::string& folder) const;
  [[nodiscard]] long status_value(const std::string& name) const;

  test_support::FakeDevice device_;
};

}  // namespace raw
