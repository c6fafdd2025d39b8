// SPDX-License-Identifier: Apache-2.0
// The pages that users read first describe jobs on several nodes, not only on one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "tests/support/manual.hpp"

namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kDocs = GBA_SOURCE_DIR "/docs";

/// In lower case, with one space between words: a phrase may be spread over two lines.
std::string words_of(const std::string& text) {
  std::string words = std::regex_replace(text, std::regex("\\s+"), " ");
  std::transform(words.begin(), words.end(), words.begin(), [](unsigned char c) { return std::tolower(c); });
  return words;
}

/// The pages for users of another library, and all manual pages, by path in docs/.
std::map<std::string, std::string> pages() {
  std::map<std::string, std::string> all;
  for (const char* name : {"from-openshmem.md", "from-ascend.md"}) {
    all[name] = words_of(test_support::manual(kDocs / name));
  }
  for (const auto& file : std::filesystem::directory_iterator(kDocs / "man")) {
    all["man/" + file.path().filename().string()] = words_of(test_support::manual(file.path()));
  }
  return all;
}

/// Of a table, the line whose first cell has `what`; of a list, the paragraph.
std::string entry_of(const std::string& page, const std::string& begin) {
  const auto at = page.find(begin);
  if (at == std::string::npos) {
    return "no entry " + begin;
  }
  return page.substr(at, page.find(begin.starts_with("- ") ? "\n- " : "\n", at) - at);
}

TEST(UserDocs, DoNotSayThatAJobIsOnOneNode) {
  for (const auto& [path, page] : pages()) {
    for (const char* phrase : {"not there: one machine", "limits.** one machine", "job on one machine:",
                               "there is no transport", "there is no network", "no network transport"}) {
      EXPECT_THAT(page, Not(HasSubstr(phrase))) << path;
    }
  }
}

TEST(UserDocs, TellUsersOfAnotherOpenShmemWhatDiffersBetweenNodes) {
  const std::string page = test_support::manual(kDocs / "from-openshmem.md");
  EXPECT_THAT(entry_of(page, "| `-H host`"), HasSubstr("(nodes.md)"));
  EXPECT_THAT(entry_of(page, "| `UCX_...`"), HasSubstr("between nodes"));
  EXPECT_THAT(entry_of(page, "- **Symmetric memory.**"), ContainsRegex("shmem_ptr.*same node.*NULL"));
  EXPECT_THAT(entry_of(page, "- **Completion.**"), ContainsRegex("same node.*another node[^.]*shmem_quiet"));
  EXPECT_THAT(entry_of(page, "- **Contexts and sessions**"), HasSubstr("between nodes"));
  EXPECT_THAT(entry_of(page, "- **Limits.**"), HasSubstr("(nodes.md#limits)"));
}

}  // namespace
