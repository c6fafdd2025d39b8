// SPDX-License-Identifier: Apache-2.0
// What is written in several places because programs of others read it: the version, the switches of the build, the
// licences of headers that are compiled in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "tests/scripts/tree.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"

namespace {

using scripts_test::kTree;
using testing::HasSubstr;
using testing::Not;

std::string text_of(const std::string& file) {
  return test_support::manual(kTree / file);
}

/// The first group of the first match of `pattern` in the file, or "".
std::string first_of(const std::string& file, const std::string& pattern) {
  const auto match = test_support::first_match(text_of(file), pattern);
  return match.empty() ? "" : match[1];
}

std::string project_version() {
  return first_of("CMakeLists.txt", R"(project\(gba VERSION ([0-9.]+))");
}

TEST(Versions, AreThoseOfTheNewestChange) {
  const std::string heading = project_version() + " - " + first_of("CMakeLists.txt", R"(GBA_RELEASE_DATE ([0-9-]+)\))");
  EXPECT_EQ(first_of("CHANGELOG.md", "\n## ([^\n]+)\n"), heading);
  EXPECT_EQ(first_of("packaging/spack/packages/libshmem/package.py", R"re(version\("([0-9.]+)"\))re"),
            project_version());
  EXPECT_THAT(text_of("docs/deployment.md"), HasSubstr("libshmem@" + project_version() + "\n"));
}

/// The switches of optional parts, which take ON, OFF and AUTO.
std::set<std::string> switches() {
  std::set<std::string> all;
  for (const char* file : {"wire/CMakeLists.txt", "shmem/bootstrap/CMakeLists.txt", "kv/exchange/CMakeLists.txt",
                           "openmpi/CMakeLists.txt", "python/CMakeLists.txt", "python/shmem_torch/CMakeLists.txt"}) {
    all.merge(test_support::all_of(text_of(file), R"(\bgba_switch\((\w+))"));
  }
  return all;
}

TEST(Switches, AreTheVariantsOfTheSpackRecipe) {
  const std::string recipe = text_of("packaging/spack/packages/libshmem/package.py");
  EXPECT_EQ(switches().size(), 7U);
  EXPECT_EQ(test_support::all_of(recipe, R"re(define_from_variant\("(\w+)", "\w+"\))re"), switches());
  EXPECT_EQ(test_support::all_of(recipe, R"re(define_from_variant\("\w+", "(\w+)"\))re"),
            test_support::all_of(recipe, R"re(variant\("(\w+)", default)re"));
}

TEST(Switches, AreDocumented) {
  for (const auto& name : switches()) {
    EXPECT_THAT(text_of("docs/install.md"), HasSubstr("`" + name + "`"));
  }
}

TEST(SpackRecipe, IsPython) {
  const test_support::TempDir dir;
  const auto outcome = test_support::run(
      {"python3", "-c", "import py_compile, sys; py_compile.compile(sys.argv[1], sys.argv[2], doraise=True)",
       kTree / "packaging/spack/packages/libshmem/package.py", dir.file("compiled")});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

/// A project whose headers are compiled into ours: how they are included, and its name in NOTICE.
struct Compiled {
  const char* include;
  const char* files;
  const char* name;
};
constexpr std::array<Compiled, 6> kCompiled{{{"<CLI/", "CLI/*", "CLI11"},
                                             {"<nlohmann/", "nlohmann/*", "nlohmann/json"},
                                             {"<fmt/", "fmt/*", "{fmt}"},
                                             {"<xxhash.h>", "xxhash.h", "xxHash"},
                                             {"<valgrind/", "valgrind/*", "memcheck.h"},
                                             {"<pybind11/", "pybind11/*", "pybind11"}}};

/// The includes of all sources that are installed, in angle brackets; the benchmarks are not.
std::string includes() {
  std::string all;
  for (const char* folder :
       {"ascend", "base", "bench", "driver", "fake_device", "kv", "python", "shmem", "tools", "wire"}) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kTree / folder)) {
      const bool source = file.path().extension() == ".cpp" || file.path().extension() == ".hpp";
      if (source && !file.path().filename().string().starts_with("bench_")) {
        for (const auto& name : test_support::all_of(test_support::manual(file.path()), "#include (<[^>\n]+>)")) {
          all += name + "\n";
        }
      }
    }
  }
  return all;
}

TEST(Licences, NameEachProjectThatIsCompiledIn) {
  const std::string used = includes();
  const std::string notice = text_of("NOTICE");
  const std::string copyright = text_of("packaging/debian/copyright");
  for (const auto& project : kCompiled) {
    EXPECT_THAT(used, HasSubstr(project.include)) << "no longer used: remove it from NOTICE";
    EXPECT_THAT(notice, HasSubstr(std::string("\n  ") + project.name + " "));
    EXPECT_THAT(copyright, HasSubstr(std::string("\nFiles: ") + project.files + "\nCopyright: "));
  }
  // System headers, and those of libraries that are linked dynamically.
  const std::string known =
      "<(?:sys|linux|gnu|net|netinet|netpacket|arpa|asm|systemd|pci|sodium|ucm|ucp|uct|ucs|ATen|c10|torch)/.*";
  for (const auto& name : test_support::all_of(used, "(<[^>\n]+/[^>\n]+>)\n")) {
    const bool compiled = std::any_of(kCompiled.begin(), kCompiled.end(),
                                      [&](const Compiled& project) { return name.starts_with(project.include); });
    const std::string path = name.substr(1, name.size() - 2);
    const bool own = std::filesystem::exists(kTree / "driver/include" / path) ||
                     std::filesystem::exists(kTree / "ascend/include" / path) || name.starts_with("<gba/") ||
                     name.starts_with("<uapi/") || name.starts_with("<shmem");
    EXPECT_TRUE(compiled || own || test_support::matches(name, known)) << name << ": whose licence is it under?";
  }
}

TEST(Licences, OfTheCopyrightFileAreAllThere) {
  const std::string copyright = text_of("packaging/debian/copyright");
  // A name after files, and the same with a text.
  EXPECT_EQ(test_support::all_of(copyright, "\nLicense: ([^\n]+)\n\n"),
            test_support::all_of(copyright, "\nLicense: ([^\n]+)\n "));
}

TEST(MaintainerScripts, AreShellAndTouchNoDevicesOfOthers) {
  int scripts = 0;
  for (const char* folder : {"debian", "rpm"}) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kTree / "packaging" / folder)) {
      const std::string name = file.path().filename();
      if (!name.starts_with("post") && !name.starts_with("pre")) {
        continue;
      }
      ++scripts;
      const auto outcome = test_support::run({"sh", "-n", file.path()});
      EXPECT_TRUE(outcome.exit.clean()) << file.path() << outcome.output;
      EXPECT_THAT(test_support::manual(file.path()), Not(HasSubstr("subsystem-match"))) << file.path();
    }
  }
  EXPECT_GE(scripts, 8);
}

/// packaging/slurm/taskprolog.sh with ports that are files of `folder`.
test_support::Outcome task_prolog(const test_support::TempDir& folder,
                                  const std::vector<std::string>& environment = {}) {
  std::vector<std::string> variables{"GBA_DEVICE="};
  variables.insert(variables.end(), environment.begin(), environment.end());
  return test_support::run({"sh", kTree / "packaging/slurm/taskprolog.sh", folder.file("")}, variables);
}

TEST(TaskProlog, NamesTheFirstPortThatTheJobMayOpen) {
  const test_support::TempDir folder;
  EXPECT_EQ(task_prolog(folder).output, "") << "no port";
  std::filesystem::create_symlink("nowhere", folder.file("gba0"));  // cannot be opened, even by root
  EXPECT_EQ(task_prolog(folder).output, "");
  std::filesystem::create_symlink("/dev/null", folder.file("gba1"));
  std::filesystem::create_symlink("/dev/null", folder.file("gba2"));
  const auto outcome = task_prolog(folder);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("export GBA_DEVICE=")) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("/gba1\n")) << outcome.output;
  EXPECT_EQ(task_prolog(folder, {"GBA_DEVICE=/dev/gba7"}).output, "") << "the user has chosen";
}

TEST(Workflow, RunsTheTestsAsDevelopersDo) {
  const std::string workflow = text_of(".github/workflows/test.yml");
  EXPECT_THAT(workflow, HasSubstr("- run: scripts/test.sh\n"));
  for (const auto& script : test_support::all_of(workflow, "(scripts/[a-z-]+\\.sh)")) {
    EXPECT_TRUE(std::filesystem::exists(kTree / script)) << script;
  }
}

}  // namespace
