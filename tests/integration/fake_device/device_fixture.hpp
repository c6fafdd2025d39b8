// SPDX-License-Identifier: Apache-2.0
// Each test has its own fake device.
#pragma once

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace raw {

class FakeDevice : public ::testing::Test {
 protected:
  FakeDevice() : FakeDevice(std::vector<std::string>{}) {}
  /// `launcher` is a command that starts the device; the device's command line is appended to it.
  explicit FakeDevice(const std::vector<std::string>& options, const std::vector<std::string>& launcher = {})
      : device_(command_line(path(), options, launcher)) {
    if (!device_.wait_for_output("ready on", test_support::Seconds(20))) {
      throw std::runtime_error("the device is not ready: " + device_.output());
    }
  }

  static std::vector<std::string> command_line(const std::string& socket, const std::vector<std::string>& options = {},
                                               std::vector<std::string> line = {}) {
    line.insert(line.end(), {test_support::program("gba-fake-device"), "--socket", socket, "--log-level", "info"});
    line.insert(line.end(), options.begin(), options.end());
    return line;
  }
  [[nodiscard]] std::string path() const { return dir_.file("gba.sock"); }
  [[nodiscard]] const test_support::TempDir& folder() const { return dir_; }
  test_support::Process& device() { return device_; }

  /// How often the device has gone to sleep in the kernel.
  [[nodiscard]] long context_switches() const { return status_value("voluntary_ctxt_switches:"); }
  /// The device sleeps in the kernel at this moment.
  [[nodiscard]] bool asleep() const {
    std::ifstream stat("/proc/" + std::to_string(device_.pid()) + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto name_end = text.rfind(')');  // the state follows the name
    return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
  }
  [[nodiscard]] long resident_kib() const { return status_value("VmRSS:"); }
  [[nodiscard]] std::size_t open_files() const { return entries("fd"); }
  /// How many it can have open before the kernel has to give it a larger table.
  [[nodiscard]] long file_table() const { return status_value("FDSize:"); }
  [[nodiscard]] std::size_t threads() const { return entries("task"); }
  /// Expects that the device soon has no more than `count` files open: a thread of its own closes them.
  void expect_files(std::size_t count) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (open_files() > count && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    EXPECT_LE(open_files(), count);
  }

 private:
  [[nodiscard]] std::size_t entries(const std::string& folder) const {
    const std::filesystem::directory_iterator all("/proc/" + std::to_string(device_.pid()) + "/" + folder);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  [[nodiscard]] long status_value(const std::string& name) const {
    std::ifstream status("/proc/" + std::to_string(device_.pid()) + "/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.starts_with(name)) {
        return std::stol(line.substr(name.size()));
      }
    }
    return -1;
  }

  test_support::TempDir dir_;
  test_support::Process device_;
};

}  // namespace raw
