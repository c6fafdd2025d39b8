// SPDX-License-Identifier: Apache-2.0
// What a manual page says, to be held against the program that it describes.
#pragma once

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

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

}  // namespace test_support
