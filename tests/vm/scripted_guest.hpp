// SPDX-License-Identifier: Apache-2.0
// A guest whose first process is a script of commands, and what these said: guest/commands.sh prints it on the console.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace vm {

/// The output and the exit code of a command in the guest.
struct Said {
  std::string text;
  int code = -1;
};

/// By the names that the script gives the commands.
struct Transcript {
  std::string console;
  std::map<std::string, Said> commands;
};

/// Boots the cache's `kernel`, with a device, into the initramfs that `script` of this folder makes; `arguments` are
/// that script's, without the last one, which is the output. Returns what the guest said until it switched off, or
/// until `limit` was over.
Transcript boot(const std::string& kernel, const std::string& script, std::vector<std::string> arguments,
                test_support::Seconds limit);

}  // namespace vm
