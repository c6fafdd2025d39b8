// SPDX-License-Identifier: Apache-2.0
// The command line of gba-fake-device.
#pragma once

#include <optional>

#include "fake_device/log.hpp"
#include "fake_device/server.hpp"

namespace fake_device {

struct Arguments {
  Options options;
  std::optional<unsigned> cpu;
  LogLevel log_level = LogLevel::kWarning;
};

/// What the command line asks for; or, where that is nothing to serve (--help, a mistake, which has been printed), the
/// exit code.
struct ParsedArguments {
  std::optional<Arguments> arguments;
  int exit_code = 0;
};
ParsedArguments parse_arguments(int argc, const char* const* argv);

}  // namespace fake_device
