// SPDX-License-Identifier: Apache-2.0
// --debugger and --valgrind: the command that stands before a PE's own.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shmem/result.hpp"

namespace shmem::launcher {

struct Options;

/// --debugger PROGRAM[:PES]
struct Debugger {
  std::string text;                      // as it was given
  std::string program;                   // gdb, or a program with its options
  std::vector<std::pair<int, int>> pes;  // from the first to the second; empty: chosen by the terminal
};
/// nullopt if PES is not a list of numbers and ranges.
std::optional<Debugger> debugger_of(const std::string& text);

/// What runs the PEs of this oshrun. Constant.
class ToolCommand {
 public:
  /// Runs each PE without a tool.
  ToolCommand() = default;
  /// An Error if the tool is not installed. With a terminal for input and output (`terminal`), one PE alone, by default
  /// PE 0, runs in the debugger at the terminal. Otherwise all PEs, or those that are named, run in it without input,
  /// and it prints where a PE has failed.
  static Result<ToolCommand> of(const Options& options, bool terminal);

  /// The words before the command of PE `number`; none if it runs alone.
  [[nodiscard]] std::vector<std::string> before(int number) const;
  /// The PE that has the terminal.
  [[nodiscard]] std::optional<int> at_terminal() const { return at_terminal_; }

 private:
  std::vector<std::string> words_;
  std::vector<std::pair<int, int>> pes_;  // empty: all
  std::optional<int> at_terminal_;
};

/// What valgrind says in the files of --valgrind: how many errors which PEs had.
std::string valgrind_summary(const std::string& prefix, int pes);

}  // namespace shmem::launcher
