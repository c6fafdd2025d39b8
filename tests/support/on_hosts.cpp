// SPDX-License-Identifier: Apache-2.0
// Runs a command on hosts, for experiments by hand (tests/README.md).
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "tests/support/hosts.hpp"

int main(int argc, char** argv) try {
  const int number = argc > 2 ? std::atoi(argv[1]) : 0;
  if (number < 1 || number > 200) {
    std::fprintf(stderr, "Usage: on_hosts NUMBER COMMAND...\nMakes so many hosts and runs the command on h0.\n");
    return 2;
  }
  if (const auto missing = test_support::Hosts::missing()) {
    std::fprintf(stderr, "on_hosts: %s\n", missing->c_str());
    return 77;
  }
  const test_support::Hosts hosts(number);
  auto line = hosts.on(0, {argv + 2, argv + argc});
  std::vector<char*> arguments;
  arguments.reserve(line.size() + 1);
  for (auto& word : line) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  pid_t child = -1;
  int status = 0;
  if (::posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0 ||
      ::waitpid(child, &status, 0) != child) {
    std::perror("on_hosts");
    return 1;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
} catch (const std::exception& error) {
  std::fprintf(stderr, "on_hosts: %s\n", error.what());
  return 1;
}
