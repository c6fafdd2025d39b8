// SPDX-License-Identifier: Apache-2.0
// A gba-fake-device that a benchmark starts.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/process.hpp"

namespace bench {

/// On one processor, ready, with a socket of its own; ends with the object. The constructor throws std::runtime_error
/// if it does not become ready.
class FakeDevice {
 public:
  explicit FakeDevice(int cpu);

  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }
  /// The raw round trip to the device's processor. The device is stopped meanwhile: it polls, and would take
  /// the processor from the other side.
  [[nodiscard]] double raw_round_trip_without_it() const;

 private:
  void wait_until_ready();

  int cpu_;
  std::string socket_;
  base::Process process_;
};

/// For a process that holds many connections: each takes a few descriptors.
void raise_file_limit();

}  // namespace bench
