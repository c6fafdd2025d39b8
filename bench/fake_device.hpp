// SPDX-License-Identifier: Apache-2.0
// A gba-fake-device that a benchmark starts.
#pragma once

#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "bench/jobs.hpp"
#include "bench/measure.hpp"

namespace bench {

/// Has its own socket, and runs on one processor if one is given; ends with the object. The constructor and start()
/// return when the device is ready, and throw std::runtime_error if it is not in time.
class FakeDevice {
 public:
  explicit FakeDevice(std::optional<int> cpu = std::nullopt) : cpu_(cpu) { start(); }

  [[nodiscard]] const std::string& socket() const { return socket_; }
  /// The name for gba_open().
  [[nodiscard]] std::string path() const { return "vfio-user:" + socket_; }
  [[nodiscard]] base::Process& process() { return *process_; }

  /// Again, after it has ended.
  void start() {
    std::vector<std::string> command{sibling_program("gba-fake-device"), "--socket", socket_};
    if (cpu_) {
      command.insert(command.end(), {"--cpu", std::to_string(*cpu_)});
    }
    process_.emplace(command, std::vector<std::string>{}, base::ProcessOptions{.grace = kGrace});
    if (!process_->wait_for_output("ready", base::Seconds{20})) {
      throw std::runtime_error("the fake device does not become ready: " + process_->output());
    }
  }

  /// The raw round trip to the device's processor. The device is stopped meanwhile, since it polls and would take the
  /// processor from the other side. REQUIRES: it runs on one processor.
  double raw_round_trip_without_it() {
    process_->stop();
    const double nanoseconds = raw_round_trip(cpu_.value());
    process_->resume();
    return nanoseconds;
  }

 private:
  std::optional<int> cpu_;
  std::string socket_ = "@gba-bench-" + std::to_string(::getpid());
  std::optional<base::Process> process_;
};

}  // namespace bench
