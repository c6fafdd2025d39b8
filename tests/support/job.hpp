// SPDX-License-Identifier: Apache-2.0
// Jobs under test: a device, and the PEs that oshrun starts.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace test_support {

/// A running gba-fake-device on a socket of its own.
class FakeDevice {
 public:
  /// `launcher` is a command that starts the device; the device's command line is appended to it. Throws
  /// std::runtime_error, as start() does, if the device is not ready in time.
  explicit FakeDevice(std::vector<std::string> options = {}, std::vector<std::string> launcher = {});
  ~FakeDevice();

  static std::vector<std::string> command_line(const std::string& socket, const std::vector<std::string>& options = {},
                                               std::vector<std::string> launcher = {});
  /// Starts it again, after it has ended.
  void start();
  /// Returns when it has ended.
  void kill();

  /// The folder of its socket.
  [[nodiscard]] const TempDir& folder() const { return dir_; }
  [[nodiscard]] std::string socket() const { return dir_.file("gba.sock"); }
  [[nodiscard]] std::string path() const { return "vfio-user:" + socket(); }
  [[nodiscard]] Process& process() const { return *process_; }

 private:
  TempDir dir_;
  const std::vector<std::string> line_;
  std::unique_ptr<Process> process_;
};

/// The command line of a job: oshrun -n pes [--gba device] program arguments...
std::vector<std::string> oshrun(int pes, const std::string& gba, std::vector<std::string> command);

/// Whether PEs of one job can be on several nodes here: libshmem was built with UCX, which this machine has.
bool has_network();
inline constexpr const char* kNoNetwork =
    "no job on several nodes here: libshmem was built without UCX, or UCX is not installed";

/// The sum of the numbers after each `label` in the output.
unsigned long long sum_of(const std::string& output, const std::string& label);

/// The pid that PE `pe` has printed, or -1.
pid_t pid_of(const std::string& output, int pe);

}  // namespace test_support
