// SPDX-License-Identifier: Apache-2.0
#include "tests/support/text.hpp"

#include <map>
#include <regex>

namespace test_support {
namespace {

/// Tests match many lines with the same pattern.
const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> known;
  const auto found = known.find(pattern);
  return found != known.end() ? found->second : known.emplace(pattern, std::regex(pattern)).first->second;
}

Match groups(const std::smatch& found) {
  return {found.begin(), found.end()};
}

}  // namespace

bool matches(const std::string& text, const std::string& pattern) {
  return std::regex_match(text, compiled(pattern));
}

bool has_match(const std::string& text, const std::string& pattern) {
  return std::regex_search(text, compiled(pattern));
}

Match match_of(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_match(text, found, compiled(pattern)) ? groups(found) : Match{};
}

Match first_match(const std::string& text, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(text, found, compiled(pattern)) ? groups(found) : Match{};
}

std::vector<Match> all_matches(const std::string& text, const std::string& pattern) {
  std::vector<Match> all;
  for (std::sregex_iterator match(text.begin(), text.end(), compiled(pattern)), end; match != end; ++match) {
    all.push_back(groups(*match));
  }
  return all;
}

std::string replace_all(const std::string& text, const std::string& pattern, const std::string& format) {
  return std::regex_replace(text, compiled(pattern), format);
}

}  // namespace test_support
