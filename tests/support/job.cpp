// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job.hpp"

#include <gtest/gtest.h>

#include "tests/support/text.hpp"

namespace test_support {

FakeDevice::FakeDevice(std::vector<std::string> options) : options_(std::move(options)) {
  start();
}

FakeDevice::~FakeDevice() = default;

void FakeDevice::start() {
  std::vector<std::string> command{program("gba-fake-device"), "--socket", socket()};
  command.insert(command.end(), options_.begin(), options_.end());
  process_ = std::make_unique<Process>(command);
  EXPECT_TRUE(process_->wait_for_output("ready", Seconds{20})) << process_->output();
}

std::vector<std::string> oshrun(int pes, const std::string& gba, std::vector<std::string> command) {
  std::vector<std::string> line{program("oshrun"), "-n", std::to_string(pes)};
  if (!gba.empty()) {
    line.insert(line.end(), {"--gba", gba});
  }
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

unsigned long long sum_of(const std::string& output, const std::string& label) {
  unsigned long long sum = 0;
  for (const auto& match : all_matches(output, label + " (\\d+)")) {
    sum += std::stoull(match[1]);
  }
  return sum;
}

pid_t pid_of(const std::string& output, int pe) {
  const auto match = first_match(output, "PE " + std::to_string(pe) + " pid (\\d+) started");
  return match.empty() ? -1 : static_cast<pid_t>(std::stol(match[1]));
}

}  // namespace test_support
