// SPDX-License-Identifier: Apache-2.0
// The documents: they describe jobs on several nodes, not only on one, and name only variables, files and pages that
// exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "tests/scripts/tree.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace {

using scripts_test::kTree;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kDocs = kTree / "docs";

/// In lower case, with one space between words: a phrase may be spread over two lines.
std::string words_of(const std::string& text) {
  std::string words = test_support::replace_all(text, "\\s+", " ");
  std::transform(words.begin(), words.end(), words.begin(), [](unsigned char c) { return std::tolower(c); });
  return words;
}

/// The pages for users of another library, and all manual pages, by path in docs/.
std::map<std::string, std::string> pages_for_users() {
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
  for (const auto& [path, page] : pages_for_users()) {
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

/// The folders of sources, without build folders.
constexpr std::array<const char*, 15> kSources{"packaging", "ascend",      "base",  "bench",   "driver",
                                               "examples",  "fake_device", "kv",    "openmpi", "python",
                                               "scripts",   "shmem",       "tests", "tools",   "udev"};

/// All documents in Markdown, with their text.
std::map<std::filesystem::path, std::string> documents() {
  std::map<std::filesystem::path, std::string> all;
  std::vector<std::filesystem::path> files{kTree / "README.md", kTree / "CONTRIBUTING.md", kTree / "CHANGELOG.md",
                                           kTree / "SECURITY.md", kTree / "uapi/README.md"};
  for (const auto& file : std::filesystem::directory_iterator(kDocs)) {
    files.push_back(file.path());
  }
  for (const char* folder : kSources) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      files.push_back(file.path());
    }
  }
  for (const auto& file : files) {
    if (file.extension() == ".md") {
      all[file] = test_support::manual(file);
    }
  }
  return all;
}

/// The anchors of a document's headings, as GitHub makes them.
std::set<std::string> anchors_of(const std::string& page) {
  std::set<std::string> anchors;
  for (const auto& heading : test_support::all_of(page, R"(\n#+ ([^\n]+))")) {
    std::string anchor;
    for (const char c : heading) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
        anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      } else if (c == ' ') {
        anchor += '-';
      }
    }
    anchors.insert(anchor);
  }
  return anchors;
}

TEST(UserDocs, HaveLinksThatLeadSomewhere) {
  const auto all = documents();
  EXPECT_GT(all.size(), 20U);
  for (const auto& [path, page] : all) {
    for (const auto& link : test_support::all_of(page, R"(\]\(([^)\s]+)\))")) {
      if (link.find("://") != std::string::npos) {
        continue;
      }
      const auto mark = link.find('#');
      const auto target =
          mark == 0 ? path : std::filesystem::weakly_canonical(path.parent_path() / link.substr(0, mark));
      ASSERT_TRUE(std::filesystem::exists(target)) << path << ": " << link;
      if (mark != std::string::npos && target.extension() == ".md") {
        EXPECT_THAT(anchors_of(all.at(target)), testing::Contains(link.substr(mark + 1))) << path << ": " << link;
      }
    }
  }
}

TEST(UserDocs, NameFilesThatExist) {
  // A placeholder, such as FILE, is in capitals.
  const std::string folders =
      "scripts|docs|uapi|driver|shmem|fake_device|udev|tests|bench|examples|openmpi|python|packaging";
  for (const auto& [path, page] : documents()) {
    for (const auto& name : test_support::all_of(page, "`((?:" + folders + ")/[a-z0-9_./-]+)`")) {
      const bool here = std::filesystem::exists(path.parent_path() / name);
      const bool program = std::filesystem::exists(kTree / (name + ".cpp"));
      EXPECT_TRUE(here || program || std::filesystem::exists(kTree / name)) << path << ": " << name;
    }
  }
}

TEST(UserDocs, NameVariablesThatThisProjectKnows) {
  const std::string kVariable = R"(\b((?:SHMEM|GBA|SMA|OSHRUN)_[A-Z0-9_]*[A-Z0-9])\b)";
  std::set<std::string> known;
  for (const char* folder : kSources) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      if (file.is_regular_file() && file.path().extension() != ".md") {
        known.merge(test_support::all_of(test_support::manual(file.path()), kVariable));
      }
    }
  }
  for (const auto& file : std::filesystem::directory_iterator(kTree / "uapi")) {
    known.merge(test_support::all_of(test_support::manual(file.path()), kVariable));
  }
  for (const auto& [path, page] : documents()) {
    // The first column of tables for users of another library has that library's variables.
    const bool of_others = path.filename().string().starts_with("from-");
    const std::string own = of_others ? test_support::replace_all(page, R"(\n\|[^|\n]*\|)", "\n") : page;
    for (const auto& name : test_support::all_of(own, kVariable)) {
      EXPECT_TRUE(known.contains(name)) << path << ": " << name;
    }
  }
}

TEST(UserDocs, HaveTheVariablesOfTheTableInTheCode) {
  const auto outcome = test_support::run(
      {(kTree / "scripts/environment-pages.py").string(), "--check", test_support::program("shmem_info")});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST(UserDocs, BeginWithAPageThatIsReadInAMinute) {
  EXPECT_LE(test_support::manual(kTree / "README.md").size(), 6000U);
}

TEST(UserDocs, BeginWithDoorsOfThreeLines) {
  std::istringstream page(test_support::manual(kTree / "README.md"));
  std::vector<int> doors;  // the command lines of each block of code that has some
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      doors.resize(doors.size() + (inside ? 1 : 0));
    } else if (inside && line.starts_with("$ ")) {
      ++doors.back();
    }
  }
  std::erase(doors, 0);
  EXPECT_EQ(doors.size(), 6U) << "what all need, then OpenSHMEM, PyTorch, KV blocks, the device, a cluster";
  for (const int lines : doors) {
    EXPECT_LE(lines, 3);
  }
}

TEST(UserDocs, HaveAGlossaryOfTheWordsOfTheProject) {
  const std::string page = test_support::manual(kDocs / "glossary.md");
  for (const char* word :
       {"| GBA |",     "| port |",     "| group |",    "| member |",        "| round |",  "| PE |",
        "| node |",    "| leader |",   "remote",       "inter-node",        "allgather",  "oversubscribed",
        "progress",    "eager",        "direct",       "scatter-allgather", "send queue", "address exchange",
        "wait policy", "scratch",      "retain",       "disconnect",        "abandon",    "healthy",
        "suspect",     "reopen",       "SpanningTeam", "ProcessGroup",      "Runtime",    "| board |",
        "| window |",  "| placement |"}) {
    EXPECT_THAT(page, HasSubstr(word));
  }
  EXPECT_THAT(test_support::manual(kTree / "README.md"), HasSubstr("(docs/glossary.md)"));
}

/// The text of all public headers.
std::string headers() {
  std::string all;
  for (const char* folder : {"shmem/include", "ascend/include", "driver/include"}) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      if (file.path().extension() == ".h") {
        all += test_support::manual(file.path());
      }
    }
  }
  return all;
}

TEST(UserDocs, NamesFromInsideTheDeviceCodeExist) {
  const std::string page = test_support::manual(kDocs / "from-ascend.md");
  const auto begin = page.find("### Names from inside the device code");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = page.substr(begin, page.find("\n## ", begin) - begin);
  // `_v2` and the like are ends of names.
  const auto names =
      test_support::all_of(section, R"((?:`|[ (])((?:shmemi|shmemx|SHMEM|CrossCore)\w*[a-z0-9A-Z])[`(])");
  EXPECT_GE(names.size(), 20U);
  const std::string all = headers();
  for (const auto& name : names) {
    EXPECT_TRUE(test_support::has_match(all, "\\b" + name + "\\b")) << name;
  }
}

}  // namespace
