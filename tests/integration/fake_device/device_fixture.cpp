// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/fake_device/device_fixture.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace raw {

FakeDevice::FakeDevice(const std::vector<std::string>& options, const std::vector<std::string>& launcher)
    : device_(command_line(path(), options, launcher)) {
  if (!device_.wait_for_output("ready on", test_support::Seconds(20))) {
    throw std::runtime_error("the device is not ready: " + device_.output());
  }
}

FakeDevice::~FakeDevice() = default;

std::vector<std::string> FakeDevice::command_line(const std::string& socket, const std::vector<std::string>& options,
                                                  std::vector<std::string> line) {
  line.insert(line.end(), {test_support::program("gba-fake-device"), "--socket", socket, "--log-level", "info"});
  line.insert(line.end(), options.begin(), options.end());
  return line;
}

bool FakeDevice::asleep() const {
  std::ifstream stat("/proc/" + std::to_string(device_.pid()) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');  // the state follows the name
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

void FakeDevice::expect_files(std::size_t count) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (open_files() > count && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_LE(open_files(), count);
}

std::size_t FakeDevice::entries(const std::string& folder) const {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(device_.pid()) + "/" + folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

long FakeDevice::status_value(const std::string& name) const {
  std::ifstream status("/proc/" + std::to_string(device_.pid()) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(name)) {
      return std::stol(line.substr(name.size()));
    }
  }
  return -1;
}

}  // namespace raw
