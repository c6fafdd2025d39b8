// SPDX-License-Identifier: Apache-2.0
// What a manual page and a completion script say, to be held against the program that they describe.
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

/// The page's source, with plain hyphens.
inline std::string manual(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return std::regex_replace(text, std::regex(R"(\\-)"), "-");
}

/// Each first group of `pattern` in `text`.
inline std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), regex); match != std::sregex_iterator(); ++match) {
    found.insert((*match)[1]);
  }
  return found;
}

/// The options that a --help names.
inline std::set<std::string> options_in_help(const std::string& help) {
  return all_of(help, R"((?:^|[\n,]) *(--[a-z-]+))");
}

/// The options that a page has an entry for.
inline std::set<std::string> options_in_manual(const std::string& page) {
  return all_of(page, R"(\n\.BI? (--[a-z-]+))");
}

/// What bash offers for the last of `words` after `program`: `script` defines `function`, which completes it.
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
