// SPDX-License-Identifier: Apache-2.0
// scripts/check-sources.py: this tree keeps its rules, and violations are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/process.hpp"

namespace {

using test_support::TempDir;
using testing::HasSubstr;

test_support::Outcome check(const std::string& tree) {
  return test_support::run({GBA_SOURCE_DIR "/scripts/check-sources.py", tree}, {}, test_support::Seconds{120});
}

/// A tree with one file in each of two layers.
class SmallTree {
 public:
  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = dir_.file(file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] test_support::Outcome check() const { return ::check(dir_.path()); }

 private:
  TempDir dir_;
};

TEST(CheckSources, FindsNothingInThisTree) {
  const auto outcome = check(GBA_SOURCE_DIR);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST(CheckSources, AcceptsAnIncludeThatPointsDown) {
  const SmallTree tree;
  tree.write("shmem/layout/job.hpp", "");
  tree.write("shmem/team/team.hpp", "#include \"shmem/layout/job.hpp\"\n");
  const auto outcome = tree.check();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST(CheckSources, RefusesAnIncludeThatPointsUp) {
  const SmallTree tree;
  tree.write("shmem/layout/job.hpp", "#include \"shmem/team/team.hpp\"\n");
  tree.write("shmem/team/team.hpp", "");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output,
              HasSubstr("shmem/layout/job.hpp includes shmem/team/team.hpp: shmem/layout is not above shmem/team"));
}

TEST(CheckSources, RefusesTheDriverInTheEmulatedDevice) {
  const SmallTree tree;
  tree.write("fake_device/model.hpp", "#include \"driver/group.hpp\"\n");
  tree.write("driver/group.hpp", "");
  EXPECT_THAT(tree.check().output, HasSubstr("fake_device knows nothing of driver"));
}

TEST(CheckSources, FindsLongLinesOfDocuments) {
  const SmallTree tree;
  const std::string words(121, 'w');
  const std::string long_line = "word " + words + "\n";
  tree.write("base/fd.cpp", "");
  tree.write("docs/page.md", "# Page\n\n" + long_line + "```\n" + long_line + "```\n| " + long_line + words + "\n");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("docs/page.md:3: a line of 126 characters"));
  EXPECT_THAT(outcome.output, HasSubstr("1 files, 1 problems"));
}

TEST(CheckSources, FindsFunctionsOfAWalkThatAreNotThere) {
  const SmallTree tree;
  tree.write("base/fd.cpp", "void Fd::open() {}\n");
  tree.write("docs/architecture.md",
             "| 1 | `Fd::open` | `base/fd.cpp` | opens |\n| 2 | `Fd::close` | `base/fd.cpp` | |\n"
             "| 3 | `open` | `base/gone.cpp` | |\n");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("docs/architecture.md: Fd::close is not in base/fd.cpp"));
  EXPECT_THAT(outcome.output, HasSubstr("docs/architecture.md: open is not in base/gone.cpp"));
  EXPECT_THAT(outcome.output, HasSubstr("1 files, 2 problems"));
}

TEST(CheckSources, FindsAFunctionOfAWalkThatOnlyAnotherClassHas) {
  const SmallTree tree;
  tree.write("base/fd.cpp", "void Fd::open() {}\nvoid Pipe::close() {}\nclass Local {\n  void look() {}\n};\n");
  tree.write("base/pipe.hpp", "class Pipe final : public Fd {\n  void close();\n};\nclass Fd;\n");
  tree.write("docs/architecture.md",
             "| 1 | `Fd::open` | `base/fd.cpp` | opens |\n| 2 | `Local::look` | `base/fd.cpp` | |\n"
             "| 3 | `Pipe::close` | `base/pipe.hpp` | |\n| 4 | `Fd::close` | `base/fd.cpp` | |\n"
             "| 5 | `Fd::close` | `base/pipe.hpp` | |\n");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("docs/architecture.md: Fd::close is not in base/fd.cpp"));
  EXPECT_THAT(outcome.output, HasSubstr("docs/architecture.md: Fd::close is not in base/pipe.hpp"));
  EXPECT_THAT(outcome.output, HasSubstr("2 files, 2 problems"));
}

TEST(CheckSources, KeepsWireBelowItsUsersAndAwayFromTheDriver) {
  const SmallTree tree;
  tree.write("base/fd.hpp", "");
  tree.write("driver/group.hpp", "");
  tree.write("wire/frames.hpp", "#include \"base/fd.hpp\"\n");
  tree.write("kv/exchange/links.hpp", "#include \"wire/frames.hpp\"\n");
  tree.write("driver/tool/link.hpp", "#include \"wire/frames.hpp\"\n");
  EXPECT_TRUE(tree.check().exit.clean()) << tree.check().output;
  tree.write("wire/endpoint.hpp", "#include \"kv/exchange/links.hpp\"\n#include \"driver/group.hpp\"\n");
  tree.write("fake_device/server.hpp", "#include \"wire/frames.hpp\"\n");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("wire is not above kv/exchange"));
  EXPECT_THAT(outcome.output, HasSubstr("wire knows nothing of driver"));
  EXPECT_THAT(outcome.output, HasSubstr("fake_device knows nothing of wire"));
}

TEST(CheckSources, KeepsLibkvexchangeAwayFromLibshmem) {
  const SmallTree tree;
  tree.write("base/fd.hpp", "");
  tree.write("wire/frames.hpp", "");
  tree.write("shmem/include/shmemx_exchange.h", "");
  tree.write("shmem/memory/copy.hpp", "#include \"base/fd.hpp\"\n");
  tree.write("shmem/memory/heap.hpp", "#include \"shmem/memory/copy.hpp\"\n");
  tree.write("kv/planner/load_plan.hpp", "#include \"shmemx_exchange.h\"\n");
  tree.write(
      "kv/exchange/local_peer.hpp",
      "#include \"wire/frames.hpp\"\n#include \"shmem/memory/copy.hpp\"\n#include \"kv/planner/load_plan.hpp\"\n");
  tree.write("kv/api/operator.hpp", "#include \"kv/exchange/local_peer.hpp\"\n#include \"shmem/memory/heap.hpp\"\n");
  EXPECT_TRUE(tree.check().exit.clean()) << tree.check().output;
  // Each is below, but not a part of the library.
  tree.write("shmem/runtime/runtime.hpp", "");
  tree.write("kv/exchange/members.hpp", "#include \"shmem/runtime/runtime.hpp\"\n#include \"shmem/memory/heap.hpp\"\n");
  tree.write("shmem/memory/copy.cpp", "#include \"shmem/memory/heap.hpp\"\n");
  const auto outcome = tree.check();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output,
              HasSubstr("kv/exchange/members.hpp includes shmem/runtime/runtime.hpp: libkvexchange has no"));
  EXPECT_THAT(outcome.output,
              HasSubstr("kv/exchange/members.hpp includes shmem/memory/heap.hpp: libkvexchange has no"));
  EXPECT_THAT(outcome.output, HasSubstr("shmem/memory/copy.cpp includes shmem/memory/heap.hpp: libkvexchange has no"));
  EXPECT_THAT(outcome.output, HasSubstr("3 problems"));
}

TEST(CheckSources, RefusesAFolderThatIsNotALayer) {
  const SmallTree tree;
  tree.write("uapi/sub/a.h", "");
  tree.write("shmem/new_folder/a.hpp", "");
  tree.write("driver/a.hpp", "#include \"shmem/new_folder/a.hpp\"\n");
  EXPECT_EQ(tree.check().exit.code, 1);
}

TEST(CheckSources, RefusesABodyWithoutBraces) {
  const SmallTree tree;
  tree.write("base/a.hpp", "void f(int a) {\n  if (a == 1) return;\n  for (;;) {\n  }\n}\n");
  EXPECT_THAT(tree.check().output, HasSubstr("base/a.hpp:2: a body without braces"));
}

TEST(CheckSources, RefusesALongLine) {
  const SmallTree tree;
  tree.write("base/a.hpp", "// " + std::string(117, 'a') + "\n// " + std::string(118, 'a') + "\n");
  const auto outcome = tree.check();
  EXPECT_THAT(outcome.output, HasSubstr("base/a.hpp:2: a line of 121 characters"));
  EXPECT_THAT(outcome.output, HasSubstr("1 problems"));
}

TEST(CheckSources, RefusesAUnitTestThatIsNotBuilt) {
  const SmallTree tree;
  tree.write("base/a.hpp", "");
  tree.write("tests/unit/base/CMakeLists.txt", "gba_test(a_test SOURCES a_test.cpp sub/b_test.cpp)\n");
  for (const char* file : {"a_test.cpp", "sub/b_test.cpp", "sub/a_test.cpp"}) {
    tree.write(std::string("tests/unit/base/") + file, "");
  }
  const auto outcome = tree.check();
  EXPECT_THAT(outcome.output, HasSubstr("tests/unit/base/sub/a_test.cpp: no CMakeLists.txt names it"));
  EXPECT_THAT(outcome.output, HasSubstr("1 problems"));
}

TEST(CheckSources, IgnoresTextInCommentsAndStrings) {
  const SmallTree tree;
  tree.write("base/a.hpp",
             "// if (a) b;\nconst char* kText = R\"(\nif (a) b;\n)\";\nvoid f() {\n  do {\n  } while (g());\n}\n");
  const auto outcome = tree.check();
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

}  // namespace
