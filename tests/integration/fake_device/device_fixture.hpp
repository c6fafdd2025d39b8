// SPDX-License-Identifier: Apache-2.0
// Each test has its own fake device.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/process.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace raw {

class FakeDevice : public ::testing::Test {
 protected:
  FakeDevice() : FakeDevice(std::vector<std::string>{}) {}
  /// `launcher` is a command that starts the device; the device's command line is appended to it.
  explicit FakeDevice(const std::vector<std::string>& options, const std::vector<std::string>& launcher = {});
  ~FakeDevice() override;

  static std::vector<std::string> command_line(const std::string& socket, const std::vector<std::string>& options = {},
                                               std::vector<std::string> line = {});
  [[nodiscard]] std::string path() const { return dir_.file("gba.sock"); }
  [[nodiscard]] const test_support::TempDir& folder() const { return dir_; }
  test_support::Process& device() { return device_; }

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
  [[nodiscard]] std::size_t entries(const std::string& folder) const;
  [[nodiscard]] long status_value(const std::string& name) const;

  test_support::TempDir dir_;
  test_support::Process device_;
};

}  // namespace raw
