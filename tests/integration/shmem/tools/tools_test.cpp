// SPDX-License-Identifier: Apache-2.0
// Jobs under tools: oshrun --valgrind, programs with AddressSanitizer, oshrun --debugger, and debuggers that read MPIR.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <set>

#include "tests/support/pe.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{300};

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

  TempDir dir_;
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

/// gdb as a parallel debugger: runs oshrun with `arguments` as a job of two PEs, which write their process numbers to
/// PREFIX.PE. At MPIR_Breakpoint it prints the table and, a while after they have begun, what the PEs have open.
Outcome in_parallel_debugger(const std::string& prefix, const Words& arguments) {
  const std::string look = "shell until [ -s " + prefix + ".0 ] && [ -s " + prefix +
                           ".1 ]; do sleep 0.1; done; sleep 0.5; for pid in $(cat " + prefix +
                           ".*); do ls -l /proc/$pid/fd; done";
  Words line{"gdb", "-q", "-batch"};
  for (const std::string& command :
       {std::string("starti"), std::string("set var *(int*)&MPIR_being_debugged = 1"),
        std::string("break MPIR_Breakpoint"), std::string("continue"), look,
        std::string("printf \"size %d state %d\\n\", *(int*)&MPIR_proctable_size, *(int*)&MPIR_debug_state"),
        std::string("set var $table = *(char**)&MPIR_proctable"),
        std::string("printf \"PE 0: %s %s %d.\\n\", *(char**)$table, *(char**)($table + 8), *(int*)($table + 16)"),
        std::string("set var $table = $table + 24"),
        std::string("printf \"PE 1: %s %s %d.\\n\", *(char**)$table, *(char**)($table + 8), *(int*)($table + 16)"),
        std::string("delete"), std::string("continue")}) {
    line.insert(line.end(), {"-ex", command});
  }
  line.insert(line.end(), {"--args", oshrun(1, "off", {})[0], "--gba", "off", "-n", "2"});
  line.insert(line.end(), arguments.begin(), arguments.end());
  line.insert(line.end(),
              {"sh", "-c", "echo $$ >\"$0.$OSHRUN_RANK\"; exec \"$1\" none", prefix, test_program("memory_pes")});
  return run(line, {}, kLimit);
}

/// The debugger has found the PEs on these hosts, at their beginning, and they have gone on behind MPIR_Breakpoint.
void expect_held_pes(const Outcome& seen, const std::string& prefix, const Words& hosts) {
  EXPECT_THAT(seen.output, HasSubstr("size 2 state 1\n"));
  for (int pe = 0; pe < 2; ++pe) {
    std::ifstream file(prefix + "." + std::to_string(pe));
    int pid = 0;
    file >> pid;
    EXPECT_THAT(seen.output, ContainsRegex("PE " + std::to_string(pe) + ": " + hosts[static_cast<std::size_t>(pe)] +
                                           " [^ ]*/[a-z]*sh " + std::to_string(pid) + "\\."));
  }
  EXPECT_EQ(count_of(seen.output, " 0 -> "), 2) << "a PE has ended, and so was not held\n" << seen.output;
  EXPECT_THAT(seen.output, Not(HasSubstr("socket:"))) << "a PE has called another, and so was not held";
  EXPECT_THAT(seen.output, HasSubstr("exited normally")) << "the PEs have not gone on";
}

TEST_F(Debugger, FindsHeldPesByMpir) {
  const std::string prefix = dir_.file("pe");
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  expect_held_pes(in_parallel_debugger(prefix, {}), prefix, {host.data(), host.data()});
}

TEST_F(Debugger, FindsHeldPesOfSeveralNodesByMpir) {
  const std::string prefix = dir_.file("pe");
  const std::string rsh = dir_.file("rsh");
  std::ofstream(rsh) << "#!/bin/sh\nhost=$1; shift\nexec env SHMEM_HOST_ID=$host sh -c \"$*\"\n";
  ::chmod(rsh.c_str(), 0755);
  expect_held_pes(in_parallel_debugger(prefix, {"--rsh", rsh, "-H", "a,b"}), prefix, {"a", "b"});
}

TEST_F(Debugger, IsToldOfAPeThatHasStartedAgain) {
  Words line{"gdb", "-q", "-batch"};
  const std::string show = "printf \"PE 1 is %d.\\n\", *(int*)(*(char**)&MPIR_proctable + 24 + 16)";
  for (const std::string& command : {std::string("starti"), std::string("set var *(int*)&MPIR_being_debugged = 1"),
                                     std::string("break MPIR_Breakpoint"), std::string("continue"), show,
                                     std::string("continue"), show, std::string("delete"), std::string("continue")}) {
    line.insert(line.end(), {"-ex", command});
  }
  line.insert(line.end(), {"--args", oshrun(1, "off", {})[0], "--gba", "off", "-n", "3", "--restart", "1", "sh", "-c",
                           "[ $OSHRUN_RANK = 1 ] && echo \"process $$.\"; exec \"$0\" seat \"$1\" once 1",
                           test_program("shmem_pes"), dir_.file("processes")});
  const auto seen = run(line, {}, kLimit);
  EXPECT_THAT(seen.output, HasSubstr("exited normally"));
  std::set<std::string> told;
  for (const Match& match : all_matches(seen.output, "PE 1 is ([0-9]+)\\.")) {
    told.insert(match[1]);
  }
  std::set<std::string> started;
  for (const Match& match : all_matches(seen.output, "process ([0-9]+)\\.")) {
    started.insert(match[1]);
  }
  EXPECT_EQ(told.size(), 2) << seen.output;
  EXPECT_EQ(told, started) << seen.output;
}

TEST(ToolOptions, AreChecked) {
  const std::string line = oshrun(1, "off", {})[0];
  EXPECT_EQ(run({line, "--debugger", "gdb", "--valgrind", "true"}).exit.code, 2);
  EXPECT_THAT(run({line, "--debugger", "gdb:x", "true"}).output, HasSubstr("gdb:x is not a program, or "));
  EXPECT_THAT(run({line, "--debugger", "/no/such/gdb", "true"}).output, HasSubstr("cannot run /no/such/gdb"));
}

}  // namespace
