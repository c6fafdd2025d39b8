// SPDX-License-Identifier: Apache-2.0
// The command line of a benchmark or tuner. CLI11 takes seconds to compile, so only options.cpp includes it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace bench {

struct ValueRange {
  double least, most;
};

/// An option, or, without dashes, an argument. A list is separated by commas in an option.
struct Option {
  const char* name;
  /// Its value, initially the default, which the help shows unless it is "" or 0.
  std::variant<bool*, int*, double*, std::size_t*, std::string*, std::vector<int>*, std::vector<std::size_t>*,
               std::vector<std::string>*>
      value;
  const char* text;
  std::optional<ValueRange> range{};
  std::vector<std::string> choices{};
  /// What is wrong with a value, or "".
  std::function<std::string(const std::string&)> check{};
};

struct Program {
  const char* name;
  const char* description;
  std::vector<Option> options;
  /// Returns the exit code for main(); what it throws is printed, and the exit code is 1.
  std::function<int()> run;
  bool needs_two_processors = false;
  const char* version = nullptr;
};

/// For main(). Returns 2 if the command line is invalid.
int run_program(const Program& program, int argc, char** argv);

/// The exit code of a benchmark that cannot run here.
constexpr int kSkipped = 77;

}  // namespace bench
