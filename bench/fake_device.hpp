// SPDX-License-Identifier: Apache-2.0
// A gba-fake-device that a benchmark starts.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/process.hpp"

namespace bench {

/// Runs on one processor, with its own socket; ends with the object. The constructor returns when the device is ready,
/// and throws std::runtime_error if it is not in time.
class FakeDevice {
 public:
  explicit FakeDevice(int cpu);

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  /// The raw round trip to the device's processor. The device is stopped meanwhile, since it polls and would take the
  /// processor from the other side.
  [[nodiscard]] double raw_round_trip_without_it() const;

 private:
  void wait_until_ready();

  int cpu_;
  std::string socket_;
  base::Process process_;
};

/// Raises the limit for a process with many connections, each of which takes a few descriptors.
void raise_file_limit();

}  // namespace bench
