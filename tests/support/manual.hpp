// SPDX-License-Identifier: Apache-2.0
// Reads manual pages and completion scripts, to compare them with the program that they describe.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace test_support {

/// The source of a page, with plain hyphens.
inline std::string manual(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex(R"(\\-)"), "-");
}

/// The first group of each match of `pattern` in `text`.
inline std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), regex); match != std::sregex_iterator(); ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

/// The options in the text of --help.
inline std::set<std::string> options_in_help(const std::string& help) {
  return all_of(help, R"((?:^|[\n,]) *(--[a-z-]+))");
}

/// The options that a page has an entry for.
inline std::set<std::string> options_in_manual(const std::string& page) {
  return all_of(page, R"(\n\.BI? (--[a-z-]+))");
}

/// The completions that bash offers for the last of `words` after `program`; `script` defines the `function` for that.
inline std::set<std::string> completions(const std::string& script, const std::string& function,
                                         const std::string& program, const std::vector<std::string>& words) {
  std::string quoted = program;
  for (const auto& word : words) {
    quoted += " '" + word + "'";
  }
  const auto outcome =
      run({"bash", "-c",
           "source " + script + "; COMP_WORDS=(" + quoted + "); COMP_CWORD=" + std::to_string(words.size()) + "; " +
               function + "; printf '%s\\n' \"${COMPREPLY[@]}\""});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  return all_of(outcome.output, "([^\n]+)");
}

}  // namespace test_support
