// SPDX-License-Identifier: Apache-2.0
// Programs under test (base/process.hpp): their paths, and the processes that they must not leave behind.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/process.hpp"
#include "base/temp_folder.hpp"

namespace test_support {

using base::Exit;
using base::Outcome;
using base::Process;
using base::Seconds;
using TempDir = base::TempFolder;

/// A program of the build tree: "gba-fake-device" -> $GBA_BIN/gba-fake-device.
std::string program(const std::string& name);
/// A helper program of the tests: $GBA_TEST_BIN/name.
std::string test_program(const std::string& name);

/// Runs a program to its end. After `limit` it is killed, which the signal of the outcome shows.
Outcome run(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
            Seconds limit = Seconds{120});

/// The processes whose command line contains `text`, except zombies. A test must not leave any behind.
std::vector<pid_t> processes_matching(const std::string& text);
/// True as soon as there are none but perhaps `except`, false if there are still some after `limit`.
bool none_matching(const std::string& text, Seconds limit = Seconds{120}, pid_t except = 0);

/// What `run` returns for a timeout of so many seconds, short because the test waits until it is over. On a busy
/// machine it may be over for a live process, too, which had no processor for that time: then it is longer.
template <typename Run, typename IsExpected>
auto with_timeouts(Run run, IsExpected is_expected) {
  auto result = run(1);
  for (const int seconds : {5, 25}) {
    if (is_expected(result)) {
      break;
    }
    result = run(seconds);
  }
  return result;
}

}  // namespace test_support
