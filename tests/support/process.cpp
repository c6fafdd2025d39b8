// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace test_support {
namespace {

constexpr std::chrono::milliseconds kPoll{2};

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string from_environment(const char* variable, const std::string& name) {
  const char* folder = std::getenv(variable);
  if (folder == nullptr) {
    throw std::runtime_error(std::string(variable) + " is not set: run the tests through ctest");
  }
  return std::string(folder) + "/" + name;
}

}  // namespace

std::string program(const std::string& name) {
  return from_environment("GBA_BIN", name);
}

std::string test_program(const std::string& name) {
  return from_environment("GBA_TEST_BIN", name);
}

Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment, Seconds limit) {
  return base::run(arguments, environment, limit);
}

std::vector<pid_t> processes_matching(const std::string& text) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        read_file(entry.path() / "cmdline").find(text) != std::string::npos) {
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
  }
  return found;
}

bool none_matching(const std::string& text, Seconds limit, pid_t except) {
  const auto end = std::chrono::steady_clock::now() + limit;
  const auto is_other = [except](pid_t process) { return process != except; };
  while (std::ranges::any_of(processes_matching(text), is_other)) {
    if (std::chrono::steady_clock::now() >= end) {
      return false;
    }
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

}  // namespace test_support
