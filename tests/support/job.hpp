// SPDX-License-Identifier: Apache-2.0
// Jobs under test: a device, and the PEs that oshrun starts.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace test_support {

/// A running gba-fake-device on a socket of its own.
class FakeDevice {
 public:
  explicit FakeDevice(std::vector<std::string> options = {}) : options_(std::move(options)) { start(); }

  /// Starts it again with the same options, after it has ended.
  void start() {
    std::vector<std::string> command{program("gba-fake-device"), "--socket", socket()};
    command.insert(command.end(), options_.begin(), options_.end());
    process_ = std::make_unique<Process>(command);
    EXPECT_TRUE(process_->wait_for_output("ready", Seconds{20})) << process_->output();
  }

  [[nodiscard]] std::string socket() const { return dir_.file("gba.sock"); }
  [[nodiscard]] std::string path() const { return "vfio-user:" + socket(); }
  Process& process() { return *process_; }

 private:
  TempDir dir_;
  const std::vector<std::string> options_;
  std::unique_ptr<Process> process_;
};

/// The command line of a job: oshrun -n pes [--gba device] program arguments...
inline std::vector<std::string> oshrun(int pes, const std::string& gba, std::vector<std::string> command) {
  std::vector<std::string> line{program("oshrun"), "-n", std::to_string(pes)};
  if (!gba.empty()) {
    line.insert(line.end(), {"--gba", gba});
  }
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

/// The sum of the numbers after each `label` in the output.
inline unsigned long long sum_of(const std::string& output, const std::string& label) {
  const std::regex pattern(label + " (\\d+)");
  unsigned long long sum = 0;
  for (std::sregex_iterator i(output.begin(), output.end(), pattern), end; i != end; ++i) {
    sum += std::stoull((*i)[1]);
  }
  return sum;
}

/// The pid that PE `pe` has printed, or -1.
inline pid_t pid_of(const std::string& output, int pe) {
  std::smatch found;
  const std::regex pattern("PE " + std::to_string(pe) + " pid (\\d+) started");
  return std::regex_search(output, found, pattern) ? static_cast<pid_t>(std::stol(found[1])) : -1;
}

}  // namespace test_support
