// SPDX-License-Identifier: Apache-2.0
// An idle device with a client on every port: its cost is measured by counting its context switches, not by time.
#include <sys/resource.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/integration/fake_device/device_fixture.hpp"

namespace {

using raw::Port;

constexpr unsigned kAllPorts = GBA_MAX_MEMBERS;
constexpr int kSeconds = 3;
constexpr long kSwitchesPerSecond = 20;

class IdleDevice : public raw::DeviceTest {
 protected:
  IdleDevice() = default;
  explicit IdleDevice(const std::vector<std::string>& launcher) : DeviceTest({}, launcher) {}

  /// Each connection takes several descriptors of this process too.
  static void SetUpTestSuite() {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max < 4UL * kAllPorts) {
      std::printf("skipped: 708 clients need more open files than the %lu that are allowed\n", limit.rlim_max);
      std::exit(77);
    }
  }

  void connect_all() {
    for (unsigned port = 0; port < kAllPorts; ++port) {
      ports_.push_back(std::make_unique<Port>(path()));
    }
  }
  void join_all() {
    group_ = ports_.front()->make_group(kAllPorts);
    for (unsigned member = 0; member < kAllPorts; ++member) {
      ports_[member]->join(group_, member);
    }
  }
  void arrive(unsigned members, std::uint64_t sequence) {
    for (unsigned member = 0; member < members; ++member) {
      ports_[member]->arrive(group_, member, sequence);
    }
  }
  void expect_flags(std::uint64_t sequence) {
    for (const auto& port : ports_) {
      ASSERT_EQ(port->wait_flag(group_, sequence - 1), sequence);
    }
  }
  void expect_rest() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!asleep() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    const long before = context_switches();
    std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
    EXPECT_LE(context_switches() - before, kSwitchesPerSecond * kSeconds);
    EXPECT_TRUE(asleep());
  }

  std::vector<std::unique_ptr<Port>> ports_;
  Port::Group group_{};
};

TEST_F(IdleDevice, SleepsWithoutClients) {
  expect_rest();
}

class IdleDeviceOnAnOldKernel : public IdleDevice {
 protected:
  IdleDeviceOnAnOldKernel() : IdleDevice({test_support::test_program("old_kernel")}) {}
};

TEST_F(IdleDeviceOnAnOldKernel, ServesClientsAndSleeps) {
  Port port(path());
  const Port::Group group = port.make_group(1);
  port.join(group, 0);
  port.arrive(group, 0, 1);
  EXPECT_EQ(port.wait_flag(group, 0), 1U);
  expect_rest();
}

TEST_F(IdleDevice, SleepsWithAllPortsConnected) {
  connect_all();
  expect_rest();
}

TEST_F(IdleDevice, SleepsBetweenTheBarriersOfAllItsMembers) {
  connect_all();
  join_all();
  expect_rest();
  arrive(kAllPorts, 1);
  expect_flags(1);
  expect_rest();
}

TEST_F(IdleDevice, SleepsInTheOpenRoundOfAllItsMembers) {
  connect_all();
  join_all();
  arrive(kAllPorts - 1, 1);
  expect_rest();
  ports_.back()->arrive(group_, kAllPorts - 1, 1);
  expect_flags(1);
}

}  // namespace
