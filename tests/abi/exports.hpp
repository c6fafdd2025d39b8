// SPDX-License-Identifier: Apache-2.0
// The functions that a header declares, and those that a library exports.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"

namespace exports {

using Names = std::set<std::string>;

/// The functions `prefix...` that the header `path` declares with the macro `api`.
inline Names declared_in(const std::string& path, const std::string& api, const std::string& prefix) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return test_support::all_of(text.str(), api + R"( [^;(]*?\b()" + prefix + R"(\w+)\()");
}

inline Names exported_by(const std::string& library) {
  const auto outcome = test_support::run({"nm", "-D", "--defined-only", "--format=posix", library});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  std::istringstream lines(outcome.output);
  Names names;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find_first_of(" @"));
    const bool version_node = line.find(" A ") != std::string::npos;
    if (!version_node) {
      names.insert(name);
    }
  }
  return names;
}

}  // namespace exports
