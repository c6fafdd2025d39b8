// SPDX-License-Identifier: Apache-2.0
// How often a device that has nothing to do wakes up.
#include <chrono>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/fake_device.hpp"
#include "bench/sections.hpp"
#include "tests/integration/fake_device/raw_client.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kSettle{1};
constexpr std::chrono::seconds kCounted{5};

long voluntary_switches(pid_t pid) {
  const std::string name = "voluntary_ctxt_switches:";
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name, 0) == 0) {
      return std::stol(line.substr(name.size()));
    }
  }
  throw std::runtime_error("the fake device has ended");
}

}  // namespace

double idle_switches_per_second(const CpuPair& cpus, unsigned clients) {
  raise_file_limit();
  const FakeDevice device(cpus.second);
  std::vector<std::unique_ptr<raw::Port>> ports;
  raw::Port::Group group{};
  for (unsigned member = 0; member < clients; ++member) {
    ports.push_back(std::make_unique<raw::Port>(device.socket()));
    if (member == 0) {
      group = ports.front()->make_group(clients);
    }
    ports.back()->join(group, member);
  }
  std::this_thread::sleep_for(kSettle);
  const long before = voluntary_switches(device.pid());
  std::this_thread::sleep_for(kCounted);
  return static_cast<double>(voluntary_switches(device.pid()) - before) / static_cast<double>(kCounted.count());
}

}  // namespace bench
