// SPDX-License-Identifier: Apache-2.0
// What all subcommands have in common: how they are declared, what they are given, how they end.
#pragma once

#include <functional>
#include <string>

#include "driver/tool/command.hpp"
#include "driver/tool/exit_code.hpp"

namespace tool {

/// What the command line asks for.
struct Invocation {
  bool json = false;
  std::string device;        // empty: $GBA_DEVICE, or else /dev/gba0
  std::function<int()> run;  // the subcommand; gives the exit code
};

/// A subcommand with the options that all have; it sets invocation.run if it is the one.
Command declare(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                const std::function<int()>& run);
/// Lets it take a device.
void take_device(Command& command, Invocation& invocation);

// One a file. `invocation` outlives `app`.
void declare_list(CLI::App& app, Invocation& invocation);
void declare_info(CLI::App& app, Invocation& invocation);
void declare_check(CLI::App& app, Invocation& invocation);
void declare_groups(CLI::App& app, Invocation& invocation);
void declare_selftest(CLI::App& app, Invocation& invocation);
void declare_monitor(CLI::App& app, Invocation& invocation);
void declare_regs(CLI::App& app, Invocation& invocation);
void declare_bench(CLI::App& app, Invocation& invocation);
void declare_report(CLI::App& app, Invocation& invocation);
void declare_limit(CLI::App& app, Invocation& invocation);
void declare_reset(CLI::App& app, Invocation& invocation);

}  // namespace tool
