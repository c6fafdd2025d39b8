// SPDX-License-Identifier: Apache-2.0
// The manual pages of the routines (docs/man): each is well formed, each routine is in one of them, and shmem(7) has
// the environment that the library reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "shmem/config/options.hpp"
#include "tests/abi/exports.hpp"
#include "tests/scripts/tree.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/text.hpp"

namespace {

using exports::Names;
using scripts_test::in_tree;
using ::testing::IsEmpty;

/// The source of each page of docs/man, by file name.
std::map<std::string, std::string> pages() {
  std::map<std::string, std::string> all;
  for (const auto& file : std::filesystem::directory_iterator(in_tree("docs/man"))) {
    all[file.path().filename()] = test_support::manual(file.path());
  }
  return all;
}

/// The names in the NAME section of a page.
Names names_of(const std::string& page) {
  const auto begin = page.find("\n.SH NAME\n") + 10;
  return test_support::all_of(page.substr(begin, page.find(" - ", begin) - begin), R"((\w+))");
}

/// For each name, the number of pages that have it.
std::map<std::string, int> count_names() {
  std::map<std::string, int> count;
  for (const auto& [file, page] : pages()) {
    for (const auto& name : names_of(page)) {
      ++count[name];
    }
  }
  return count;
}

/// The routine without its type, size and context: shmem_ctx_int_put and shmem_put32 are shmem_put.
std::string stem(const std::string& routine) {
  const std::string of_a_type =
      "shmem_(?:ctx_(?!create|destroy|get_team|session))?"
      "(?:(?:float|(?:long)?double|s?char|complex[df]|u?(?:char|short|int|long|longlong|int(?:8|16|32|64))|size|"
      "ptrdiff)_)?"
      "(.*)";
  const auto typed = test_support::match_of(routine, of_a_type);
  if (typed.empty()) {
    return routine;
  }
  return "shmem_" + test_support::replace_all(typed[1], "(i?b?(?:put|get))(?:8|16|32|64|128)(|_.*)", "$1$2");
}

Names stems_of_routines() {
  Names stems;
  for (const char* list : {"tests/abi/openshmem_symbols.txt", "tests/abi/compat_symbols.txt"}) {
    std::ifstream file(in_tree(list));
    for (std::string line; std::getline(file, line);) {
      stems.insert(stem(line.substr(0, line.find(' '))));
    }
  }
  return stems;
}

/// The calls of libgba, and of all headers of libshmem except shmem.h and shmemx_interface.h, which is for the
/// implementation of other interfaces.
Names calls_beyond_the_standard() {
  Names calls;
  for (const char* folder : {"shmem/include", "ascend/include"}) {
    for (const auto& file : std::filesystem::directory_iterator(in_tree(folder))) {
      if (file.path().extension() == ".h" && file.path().filename() != "shmemx_interface.h") {
        calls.merge(exports::declared_in(file.path(), "SHMEM_API", "shmemx_"));
      }
    }
  }
  for (const char* header : {"gba.h", "barrier.h"}) {
    calls.merge(exports::declared_in(in_tree("driver/include/gba/") + header, "GBA_API", "gba_"));
  }
  return calls;
}

TEST(ManualPages, AreWellFormed) {
  for (const auto& [file, page] : pages()) {
    EXPECT_EQ(page.find(R"(.\" SPDX-License-Identifier: Apache-2.0)"), 0U) << file;
    std::vector<std::string> sections{"NAME", "DESCRIPTION", "SEE ALSO"};
    if (file.ends_with(".3")) {
      sections.insert(sections.end(), {"SYNOPSIS", "THREADS", "EXAMPLES"});
    }
    for (const auto& section : sections) {
      EXPECT_NE(page.find("\n.SH " + section + "\n"), std::string::npos) << file << ": " << section;
    }
  }
}

TEST(ManualPages, AreReadWithoutWarnings) {
  const auto warnings = test_support::run(
      {"sh", "-c",
       "cd \"$0\" && if command -v groff >/dev/null; then groff -ww -man -Tutf8 -z -- *.[37]; else echo no groff; fi; "
       "if command -v mandoc >/dev/null; then mandoc -T lint -W error -- *.[37]; fi",
       in_tree("docs/man")});
  if (warnings.output == "no groff\n") {
    GTEST_SKIP() << warnings.output;
  }
  EXPECT_TRUE(warnings.exit.clean());
  EXPECT_THAT(warnings.output, IsEmpty());
}

TEST(ManualPages, ReferToExistingPages) {
  const auto all = pages();
  const auto names = count_names();
  for (const auto& [file, page] : all) {
    for (const auto& name : test_support::all_of(page, R"(((?:acl)?shmem\w*|gba_\w+)(?:\\fR)? ?\(3\))")) {
      // Each name of a page is installed as a link to it.
      EXPECT_TRUE(all.contains(name + ".3") || names.contains(name)) << file << ": " << name;
    }
  }
}

TEST(ManualPages, NameEachRoutineOnceAndNoOtherNames) {
  Names expected = stems_of_routines();
  EXPECT_GT(expected.size(), 150U);
  expected.merge(calls_beyond_the_standard());
  EXPECT_GT(expected.size(), 200U);
  auto count = count_names();
  for (const auto& name : expected) {
    EXPECT_EQ(count[name], 1) << "pages that name " << name;
  }
  expected.merge(Names{"shmem", "aclshmem", "libgba"});
  for (const auto& [name, number] : count) {
    EXPECT_TRUE(expected.contains(name)) << name << " is not a routine";
  }
}

/// Replaces each match of `pattern` in `text` by `plain`.
std::string with(const std::string& text, const char* pattern, const std::string& plain) {
  return test_support::replace_all(text, pattern, plain);
}

/// Assertions in C that the calls in a page's synopsis have the types given there, with `name` and `type` for TYPE.
/// Notes are in roman type. The lines after a note that names C++ are not declared in C.
std::string assertions(const std::string& page, const std::string& name, const std::string& type) {
  const auto begin = page.find("\n.SH SYNOPSIS\n") + 14;
  std::istringstream lines(page.substr(begin, page.find("\n.SH ", begin) - begin));
  std::string text;
  bool for_c = true;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("\\fR")) {
      for_c = line.find("C++") == std::string::npos;
    } else if (line.starts_with(".")) {
      for_c = true;
    } else if (for_c && line.find("typedef") == std::string::npos) {
      text += with(line, R"(\\f[BIR])", "") + "\n";
    }
  }
  text = with(with(with(text, "TYPENAME", name), "TYPE", type), "([^_])SIZE", "$0132");  // but not GBA_ADDRESS_SIZE
  return with(text, R"(([^;]*?)(\w+)\(([^;]*)\);)",
              "_Static_assert(__builtin_types_compatible_p(__typeof__($2), $1 ($3)), \"$2\");");
}

TEST(ManualPages, HaveTheDeclarationsOfTheHeaders) {
  const test_support::TempDir dir;
  const std::string file = dir.file("synopses.c");
  std::ofstream out(file);
  out << "#include <aclshmem.h>\n#include <kv_shuffle_ops.h>\n#include <gba/barrier.h>\n#include <shmemx_group.h>\n"
         "#include <shmemx_exchange.h>\n";
  for (const auto& [name, page] : pages()) {
    if (!name.ends_with(".3")) {
      continue;
    }
    // Each family of routines has one for these types, and most pages describe one family.
    out << (name.starts_with("acl") ? assertions(page, "int32", "int32_t") : assertions(page, "int", "int"));
  }
  out.close();
  const auto compiled = test_support::run({test_support::program("oshcc"), "-std=c11", "-fsyntax-only", "-Wall",
                                           "-Werror", "-I" + in_tree("driver/include"), file});
  EXPECT_TRUE(compiled.exit.clean()) << compiled.output;
}

TEST(ManualPages, HaveTheEnvironmentOfTheLibrary) {
  const std::string page = pages()["shmem.7"];
  Names expected;
  for (const auto& option : shmem::option_table()) {
    const std::string initial = option.initial;
    expected.insert(option.name + (initial.empty() ? "" : "=" + initial));
    const std::string old_name = option.old_name == nullptr ? "" : option.old_name;
    EXPECT_NE(page.find(old_name), std::string::npos) << old_name;
  }
  EXPECT_EQ(test_support::all_of(page, R"(\n\.B (SHMEM_[A-Z0-9_]+(?:=\S+)?))"), expected);
}

}  // namespace
