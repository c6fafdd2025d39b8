// SPDX-License-Identifier: Apache-2.0
// Regular expressions (ECMAScript). <regex> takes seconds to compile, so only text.cpp includes it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace test_support {

/// The whole text of a match, then that of each of its groups. It is empty if nothing matches.
using Match = std::vector<std::string>;

/// True if the whole text matches `pattern`.
bool matches(const std::string& text, const std::string& pattern);
/// True if a part of the text matches `pattern`.
bool has_match(const std::string& text, const std::string& pattern);
/// The match of the whole text.
Match match_of(const std::string& text, const std::string& pattern);
/// The first match in the text.
Match first_match(const std::string& text, const std::string& pattern);
/// All matches in the text, in its order.
std::vector<Match> all_matches(const std::string& text, const std::string& pattern);
/// The text with each match replaced by `format`, in which $1 is the first group.
std::string replace_all(const std::string& text, const std::string& pattern, const std::string& format);

}  // namespace test_support
