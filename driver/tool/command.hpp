// SPDX-License-Identifier: Apache-2.0
// The options of a subcommand. CLI11 takes longer to compile than all the rest of a file, so only main.cpp
// includes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tool {

/// Each call adds an option. The variables, whose values are the defaults, outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}

  void flag(const std::string& name, bool& value, const std::string& help);
  /// `type`: the name of the value in the help.
  void text(const std::string& name, std::string& value, const std::string& help, const std::string& type = "");
  /// The value may be missing. `given`: whether the option is on the command line.
  void optional_text(const std::string& name, std::string& value, bool& given, const std::string& help,
                     const std::string& type);
  /// From `least` to `most`. The help shows no default that is less: that is the value of an option not given.
  void number(const std::string& name, double& value, double least, double most, const std::string& help);
  void number(const std::string& name, std::uint64_t& value, std::uint64_t least, std::uint64_t most,
              const std::string& help);
  /// Any number. The help does not show the default.
  void number(const std::string& name, std::uint64_t& value, const std::string& help);
  /// Options that may be repeated.
  void list(const std::string& name, std::vector<std::uint32_t>& values, const std::string& help,
            const std::string& type);
  void list(const std::string& name, std::vector<std::string>& values, const std::string& help,
            const std::string& type);
  /// At most one of these options may be given.
  void exclude_each_other(const std::vector<std::string>& names);

 private:
  CLI::App* app_;
};

}  // namespace tool
