// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/fake_device/device_fixture.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace raw {

std::vector<std::string> DeviceTest::logged(std::vector<std::string> options) {
  options.insert(options.begin(), {"--log-level", "info"});
  return options;
}

bool DeviceTest::asleep() const {
  std::ifstream stat(status_folder() + "stat");
  std::string text;
  std::getline(stat, text);
  const auto name_end = text.rfind(')');  // the state follows the name
  return name_end != std::string::npos && text.compare(name_end, 3, ") S") == 0;
}

void DeviceTest::expect_files(std::size_t count) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (open_files() > count && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_LE(open_files(), count);
}

std::size_t DeviceTest::entries(const std::string& folder) const {
  const std::filesystem::directory_iterator all(status_folder() + folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

long DeviceTest::status_value(const std::string& name) const {
  std::ifstream status(status_folder() + "status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(name)) {
      return std::stol(line.substr(name.size()));
    }
  }
  return -1;
}

}  // namespace raw
