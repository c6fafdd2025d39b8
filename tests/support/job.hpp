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
  explicit FakeDevice(std::vector<std::string> options = {});
  ~FakeDevice();

  /// Starts it again with the same options, after it has ended.
  void start();

  [[nodiscard]] std::string socket() const { return dir_.file("gba.sock"); }
  [[nodiscard]] std::string path() const { return "vfio-user:" + socket(); }
  Process& process() { return *process_; }

 private:
  TempDir dir_;
  const std::vector<std::string> options_;
  std::unique_ptr<Process> process_;
};

/// The command line of a job: oshrun -n pes [--gba device] program arguments...
std::vector<std::string> oshrun(int pes, const std::string& gba, std::vector<std::string> command);

/// The sum of the numbers after each `label` in the output.
unsigned long long sum_of(const std::string& output, const std::string& label);

/// The pid that PE `pe` has printed, or -1.
pid_t pid_of(const std::string& output, int pe);

}  // namespace test_support
