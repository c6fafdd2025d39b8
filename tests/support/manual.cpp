// SPDX-License-Identifier: Apache-2.0
#include "tests/support/manual.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace test_support {

std::string manual(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return replace_all(text, R"(\\-)", "-");
}

std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  std::set<std::string> found;
  for (const auto& match : all_matches(text, pattern)) {
    found.insert(match[1]);
  }
  return found;
}

std::set<std::string> options_in_help(const std::string& help) {
  return all_of(help, R"((?:^|[\n,]) *(--[a-z-]+))");
}

std::set<std::string> options_in_manual(const std::string& page) {
  return all_of(page, R"(\n\.BI? (--[a-z-]+))");
}

std::set<std::string> completions(const std::string& script, const std::string& function, const std::string& program,
                                  const std::vector<std::string>& words) {
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
