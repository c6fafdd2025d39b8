// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/support/text.hpp"

namespace test_support {

FakeDevice::FakeDevice(std::vector<std::string> options, std::vector<std::string> launcher)
    : line_(command_line(socket(), options, std::move(launcher))) {
  start();
}

FakeDevice::~FakeDevice() = default;

std::vector<std::string> FakeDevice::command_line(const std::string& socket, const std::vector<std::string>& options,
                                                  std::vector<std::string> launcher) {
  launcher.insert(launcher.end(), {program("gba-fake-device"), "--socket", socket});
  launcher.insert(launcher.end(), options.begin(), options.end());
  return launcher;
}

void FakeDevice::start() {
  process_ = std::make_unique<Process>(line_);
  if (!process_->wait_for_output("ready on", Seconds{120})) {
    throw std::runtime_error("gba-fake-device is not ready: " + process_->output());
  }
}

void FakeDevice::kill() {
  process_->signal(SIGKILL);
  if (!process_->wait(Seconds{120})) {
    throw std::runtime_error("gba-fake-device has not ended");
  }
}

bool has_network() {
  if (!TESTS_WITH_UCX) {
    return false;
  }
  // In a process of its own, since the library changes the one that loads it.
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL) != nullptr ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
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
