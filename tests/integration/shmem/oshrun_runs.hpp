// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of oshrun.
#pragma once

#include <unistd.h>

#include "tests/support/pe.hpp"

namespace oshrun_test {

constexpr test_support::Seconds kLimit{120};

inline std::string oshrun() {
  return test_support::program("oshrun");
}
inline std::string pe_program() {
  return test_support::test_program("oshrun_pe");
}

/// Runs oshrun with these arguments to its end.
inline test_support::Outcome launch(std::vector<std::string> arguments,
                                    const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), oshrun());
  return test_support::run(arguments, environment, kLimit);
}

/// Runs a shell script to its end; $0 in it is oshrun, $1 and so on are `arguments`.
inline test_support::Outcome in_shell(const std::string& script, std::vector<std::string> arguments = {}) {
  arguments.insert(arguments.begin(), {"bash", "-c", script, oshrun()});
  return test_support::run(arguments, {}, kLimit);
}

inline std::string repeat(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

/// A text that is on no other process's command line.
inline std::string unique(const std::string& name) {
  static int count = 0;
  return name + "-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

}  // namespace oshrun_test
