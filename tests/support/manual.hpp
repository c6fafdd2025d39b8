// SPDX-License-Identifier: Apache-2.0
// Reads manual pages and completion scripts, to compare them with the program that they describe.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace test_support {

/// The source of a page, with plain hyphens.
std::string manual(const std::string& path);

/// The first group of each match of `pattern` in `text`.
std::set<std::string> all_of(const std::string& text, const std::string& pattern);

/// The options in the text of --help.
std::set<std::string> options_in_help(const std::string& help);

/// The options that a page has an entry for.
std::set<std::string> options_in_manual(const std::string& page);

/// The completions that bash offers for the last of `words` after `program`; `script` defines the `function` for that.
std::set<std::string> completions(const std::string& script, const std::string& function, const std::string& program,
                                  const std::vector<std::string>& words);

}  // namespace test_support
