// SPDX-License-Identifier: Apache-2.0
// A device with well-behaved clients: two members that run barriers all the time.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "tests/support/sanitized.hpp"

namespace raw {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// The longest that a barrier may take, whatever other clients do. It grows with the load of the machine: a preempted
/// thread of the device, or of a client, may hold kernel locks that the device needs.
inline microseconds worst_barrier() {
  constexpr milliseconds kOnAnIdleMachine{test_support::kSanitized ? 200 : 20};
  double load = 0;
  const bool known = ::getloadavg(&load, 1) == 1;
  const double each = known ? load / std::max(1U, std::thread::hardware_concurrency()) : 1;
  return std::chrono::duration_cast<microseconds>(kOnAnIdleMachine * std::max(1.0, each));
}

/// Two members of a group that run barriers, `pause` apart, while the object lives. The longest barrier is recorded
/// without the time for which the device or this loop waited for a processor: a barrier lasts until the last poll that
/// found it open, less the device's time in the kernel's run queue and what the host took from this virtual machine.
class BarrierLoop {
 public:
  BarrierLoop(const std::string& path, pid_t device, microseconds pause)
      : first_(path),
        second_(path),
        group_(first_.make_group(2)),
        schedstat_(::open(fmt::format("/proc/{0}/task/{0}/schedstat", device).c_str(), O_RDONLY | O_CLOEXEC)),
        stat_(::open("/proc/stat", O_RDONLY | O_CLOEXEC)),
        pause_(pause) {
    first_.join(group_, 0);
    second_.join(group_, 1);
    thread_ = std::thread([this] { run(); });
  }
  BarrierLoop(const BarrierLoop&) = delete;
  BarrierLoop& operator=(const BarrierLoop&) = delete;
  ~BarrierLoop() {
    stop_ = true;
    thread_.join();
  }

  [[nodiscard]] bool lost() const { return lost_; }
  /// Waits for three more barriers; false if one is lost.
  [[nodiscard]] bool goes_on() const {
    const auto wanted = barriers_ + 3;
    while (barriers_ < wanted && !lost_) {
      std::this_thread::yield();
    }
    return !lost_;
  }
  /// The longest barrier that has completed since the last call.
  microseconds take_worst() { return microseconds(worst_.exchange(0)); }
  /// The FAULT registers of the members.
  std::uint64_t faults() { return first_.read(GBA_REG_FAULT) | second_.read(GBA_REG_FAULT); }

 private:
  static constexpr std::chrono::seconds kLost{20};

  void run() {
    for (std::uint64_t sequence = 1; !stop_; ++sequence) {
      const auto waited = lost_time();
      first_.arrive(group_, 0, sequence);
      second_.arrive(group_, 1, sequence);
      const auto start = Clock::now();
      auto open = start;
      for (auto now = start; !released(sequence); now = Clock::now()) {
        if (now - start > kLost) {
          lost_ = true;
          return;
        }
        open = now;
        std::this_thread::yield();
      }
      const auto taken = std::max(open - start - (lost_time() - waited), Clock::duration::zero());
      const auto count = std::chrono::duration_cast<microseconds>(taken).count();
      if (count > worst_.load()) {
        worst_ = count;
      }
      ++barriers_;
      std::this_thread::sleep_for(pause_);
    }
  }

  [[nodiscard]] bool released(std::uint64_t sequence) const {
    return first_.flag(group_) == sequence && second_.flag(group_) == sequence;
  }

  [[nodiscard]] std::chrono::nanoseconds lost_time() const { return run_queue_time() + stolen_time(); }

  // The kernel counts it in ticks, of all processors together; a part of a tick counts when it is over.
  [[nodiscard]] std::chrono::nanoseconds stolen_time() const {
    std::array<char, 256> text{};
    unsigned long long ticks = 0;
    const bool known = ::pread(stat_.get(), text.data(), text.size() - 1, 0) > 0 &&
                       std::sscanf(text.data(), "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) == 1;
    constexpr std::int64_t kSecond = 1'000'000'000;
    return std::chrono::nanoseconds(known ? kSecond / ::sysconf(_SC_CLK_TCK) * static_cast<std::int64_t>(ticks) : 0);
  }

  [[nodiscard]] std::chrono::nanoseconds run_queue_time() const {
    std::array<char, 128> text{};
    unsigned long long ran = 0;
    unsigned long long waited = 0;
    const bool known = ::pread(schedstat_.get(), text.data(), text.size() - 1, 0) > 0 &&
                       std::sscanf(text.data(), "%llu %llu", &ran, &waited) == 2;
    return std::chrono::nanoseconds(known ? waited : 0);
  }

  Port first_;
  Port second_;
  Port::Group group_;
  Fd schedstat_;
  Fd stat_;
  const microseconds pause_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> lost_ = false;
  std::atomic<std::uint64_t> barriers_ = 0;
  std::atomic<microseconds::rep> worst_ = 0;
  std::thread thread_;
};

class Bystanders : public DeviceTest {
 protected:
  explicit Bystanders(const std::vector<std::string>& options = {}, microseconds pause = milliseconds(1),
                      const std::vector<std::string>& launcher = {})
      : DeviceTest(options, launcher), loop_(path(), device().pid(), pause) {
    // The device closes the descriptors of the members a little after it has used them.
    do {
      files_ = open_files();
      std::this_thread::sleep_for(milliseconds(10));
    } while (open_files() != files_);
  }

  /// Expects that the members' barriers continue, that none has taken long, and that the members have no fault.
  void expect_unharmed() {
    ASSERT_TRUE(loop_.goes_on()) << device().output();
    EXPECT_LT(loop_.take_worst(), worst_barrier());
    EXPECT_EQ(loop_.faults(), 0U);
  }

  /// Expects that the device closes all descriptors of other clients, soon after these have ended.
  void expect_no_files_left() { expect_files(files_); }

  BarrierLoop& loop() { return loop_; }

 private:
  BarrierLoop loop_;
  std::size_t files_ = 0;
};

}  // namespace raw
