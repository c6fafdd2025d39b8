// SPDX-License-Identifier: Apache-2.0
// Jobs under tools: oshrun --valgrind, programs with AddressSanitizer, oshrun --debugger, and debuggers that read MPIR.
#include <unistd.h>

#include <fstream>

#include "tests/support/pe.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{100};

bool has(const std::string& tool) {
  return run({"sh", "-c", "command -v " + tool}).exit.code == 0;
}

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Words with_options(const Words& options, const Words& command) {
  Words line{oshrun(1, "off", {})[0], "-n", "2", "--gba", "off"};
  line.insert(line.end(), options.begin(), options.end());
  line.push_back(test_program(command[0]));
  line.insert(line.end(), command.begin() + 1, command.end());
  return line;
}

class Valgrind : public Test {
 protected:
  void SetUp() override {
    if (!has("valgrind") || kSanitized || kEmulated) {
      GTEST_SKIP() << "valgrind is not installed, or the programs have a sanitizer";
    }
  }
  Outcome job(const std::string& what) {
    return run(with_options({"--valgrind=" + prefix_}, {"memory_pes", what}), {}, kLimit);
  }
  [[nodiscard]] std::string report(int pe) const { return read(prefix_ + "." + std::to_string(pe) + ".log"); }

  TempDir dir_;
  const std::string prefix_ = dir_.file("report");
};

TEST_F(Valgrind, FindsNothingInRightPrograms) {
  const auto right = job("none");
  EXPECT_EQ(right.exit.code, 0) << right.output << report(0);
  EXPECT_EQ(right.output, "oshrun: valgrind's reports: " + prefix_ + ".PE.log; no errors\n");
  for (int pe = 0; pe < 2; ++pe) {
    EXPECT_THAT(report(pe), AllOf(HasSubstr("ERROR SUMMARY: 0 errors"), Not(HasSubstr("unhandled")))) << report(pe);
  }
}

TEST_F(Valgrind, FindsUseOfABlockThatIsFreed) {
  const auto wrong = job("freed");
  EXPECT_THAT(wrong.output, HasSubstr("2 errors of 2 PEs, first in " + prefix_ + ".0.log\n"));
  EXPECT_THAT(report(1), AllOf(HasSubstr("Invalid write of size 1"),
                               HasSubstr("is 50 bytes inside a block of size 100"), HasSubstr("shmem_free")))
      << report(1);
}

TEST_F(Valgrind, FindsOverflow) {
  job("overflow");
  EXPECT_THAT(report(0), AllOf(HasSubstr("Invalid write of size 1"), HasSubstr("is 0 bytes after a block of size 100"),
                               HasSubstr("shmem_malloc")))
      << report(0);
}

TEST_F(Valgrind, FindsUseOfFreeMemoryBehindABlock) {
  job("before");
  EXPECT_THAT(report(0), HasSubstr("Invalid read of size 1")) << report(0);
}

#ifdef MEMORY_PES_WITH_SANITIZER
class AddressSanitizer : public Test {
 protected:
  static Outcome job(const std::string& what) {
    return run(with_options({}, {"memory_asan_pes", what}), {"ASAN_OPTIONS=detect_leaks=0"}, kLimit);
  }
};

TEST_F(AddressSanitizer, FindsNothingInRightPrograms) {
  const auto right = job("none");
  EXPECT_EQ(right.exit.code, 0) << right.output;
  EXPECT_EQ(right.output, "");
}

TEST_F(AddressSanitizer, FindsWrongUsesOfBlocks) {
  for (const std::string what : {"freed", "overflow", "before"}) {
    const auto wrong = job(what);
    EXPECT_NE(wrong.exit.code, 0) << what;
    EXPECT_THAT(wrong.output, HasSubstr("AddressSanitizer: use-after-poison on address")) << what;
    EXPECT_THAT(wrong.output, HasSubstr("memory_pes.c")) << what;
  }
}
#endif

class Debugger : public Test {
 protected:
  void SetUp() override {
    // Processes with a sanitizer run slowly under ptrace, and LeakSanitizer not at all.
    if (!has("gdb") || kSanitized || kEmulated) {
      GTEST_SKIP() << "gdb is not installed, or the programs have a sanitizer";
    }
    if (run({"gdb", "-q", "-batch", "-return-child-result", "-ex", "run", "--args", "true"}, {}, kLimit).exit.code !=
        0) {
      GTEST_SKIP() << "gdb cannot run programs here";
    }
  }
};

TEST_F(Debugger, PrintsTheStackOfAPeThatFails) {
  const auto wrong = run(with_options({"--debugger", "gdb"}, {"memory_pes", "signal"}), {}, kLimit);
  EXPECT_NE(wrong.exit.code, 0);
  EXPECT_THAT(wrong.output, AllOf(HasSubstr("received signal SIGABRT"), ContainsRegex("#[0-9]+ .* main \\(")))
      << wrong.output;
}

TEST_F(Debugger, RunsOnlyThePesThatAreNamed) {
  const auto one = run(with_options({"--debugger", "gdb:1"}, {"memory_pes", "none"}), {}, kLimit);
  EXPECT_EQ(one.exit.code, 0) << one.output;
  EXPECT_EQ(count_of(one.output, "Using host libthread_db"), 1) << one.output;
}

TEST_F(Debugger, FindsThePesByMpir) {
  const auto seen = run({"gdb",
                         "-q",
                         "-batch",
                         "-ex",
                         "set breakpoint pending on",
                         "-ex",
                         "starti",
                         "-ex",
                         "set var *(int*)&MPIR_being_debugged = 1",
                         "-ex",
                         "break MPIR_Breakpoint",
                         "-ex",
                         "continue",
                         "-ex",
                         "printf \"size %d state %d\\n\", *(int*)&MPIR_proctable_size, *(int*)&MPIR_debug_state",
                         "-ex",
                         "printf \"program %s\\n\", *(char**)(*(char**)&MPIR_proctable + 24 + 8)",
                         "-ex",
                         "printf \"pid %d\\n\", *(int*)(*(char**)&MPIR_proctable + 24 + 16)",
                         "-ex",
                         "kill",
                         "--args",
                         oshrun(1, "off", {})[0],
                         "-n",
                         "2",
                         test_program("memory_pes"),
                         "none"},
                        {}, kLimit);
  EXPECT_THAT(seen.output,
              AllOf(HasSubstr("size 2 state 1\n"), HasSubstr("program " + test_program("memory_pes") + "\n"),
                    ContainsRegex("\npid [1-9][0-9]+\n")))
      << seen.output;
}

TEST(ToolOptions, AreChecked) {
  const std::string line = oshrun(1, "off", {})[0];
  EXPECT_EQ(run({line, "--debugger", "gdb", "--valgrind", "true"}).exit.code, 2);
  EXPECT_THAT(run({line, "--debugger", "gdb:x", "true"}).output, HasSubstr("gdb:x is not a program, or "));
  EXPECT_THAT(run({line, "--debugger", "/no/such/gdb", "true"}).output, HasSubstr("cannot run /no/such/gdb"));
}

}  // namespace
