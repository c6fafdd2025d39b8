// SPDX-License-Identifier: Apache-2.0
// Global and static variables as symmetric objects, in programs with and without fixed addresses.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

/// The program is built twice, with and without fixed addresses.
class Globals : public testing::TestWithParam<const char*> {};

TEST_P(Globals, AreReachedWhateverTheirKind) {
  for (const int pes : {1, 2, 5}) {
    const auto job = run_pes(pes, "off", {GetParam(), "access"});
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

TEST_P(Globals, AreReachedAtAddressesThatAreNotRandom) {
  const auto job = run(oshrun(2, "off", {"setarch", "-R", test_program(GetParam()), "access"}));
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_P(Globals, LoseNoAtomicAdd) {
  const auto job = run_pes(3, "off", {GetParam(), "add"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_P(Globals, KeepTheirValuesWhenTheLibraryEndsAndStartsAgain) {
  const auto job = run_pes(3, "off", {GetParam(), "again"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_P(Globals, EndWithTheDataOfTheirProgram) {
  const auto job = run_pes(2, "off", {GetParam(), "beyond"});
  EXPECT_NE(job.exit.code, 0);
  EXPECT_EQ(job.exit.signal, 0);
  EXPECT_THAT(job.output,
              HasSubstr("shmem_putmem: 1073741824 bytes at the given address are not inside the symmetric heap"));
}

INSTANTIATE_TEST_SUITE_P(Programs, Globals, Values("globals_pes", "globals_pes_fixed"), kNameByParameters);

/// PE 1 runs the program at fixed addresses, the other PEs the one without.
Outcome two_programs(const std::string& what) {
  const std::string script = "if [ \"$OSHRUN_RANK\" = 1 ]; then exec " + test_program("globals_pes_fixed") + " " +
                             what + "; else exec " + test_program("globals_pes") + " " + what + "; fi";
  return run(oshrun(3, "off", {"bash", "-c", script}));
}

TEST(TwoPrograms, ShareTheHeapButNoGlobals) {
  const auto job = two_programs("beside-another");
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(TwoPrograms, AreNamedAsDifferentInTheMessage) {
  const auto job = two_programs("beside-another-mistake");
  EXPECT_NE(job.exit.code, 0);
  EXPECT_THAT(job.output, HasSubstr("runs another program, or other libraries"));
}

TEST(TwoPrograms, UseGlobalsOnlyInCollectivesOfPesThatHaveThem) {
  const auto job = two_programs("collective-beside-another");
  EXPECT_NE(job.exit.code, 0);
  EXPECT_EQ(job.exit.signal, 0);
  for (const char* text : {"PE 0 had 0 failures before", "PE 2 had 0 failures before",
                           "shmem_uint64_sum_reduce: 8 bytes at the given address are not symmetric: PE "}) {
    EXPECT_THAT(job.output, HasSubstr(text));
  }
}

TEST(Globals, OfASkippedLibraryAreNotSymmetric) {
  const auto access = [](const char* skipped) {
    return run_pes(2, "off", {"globals_pes", "access"}, {std::string("SHMEM_SYMMETRIC_GLOBALS_SKIP=") + skipped});
  };
  EXPECT_TRUE(access("libanother").exit.clean());
  const auto job = access("libanother,libglobals_library");
  EXPECT_NE(job.exit.code, 0);
  EXPECT_THAT(job.output, HasSubstr("bytes at the given address are not inside the symmetric heap"));
}

TEST(Globals, AreNotSymmetricWhenSwitchedOff) {
  const auto job = run_pes(2, "off", {"globals_pes", "not-symmetric"}, {"SHMEM_SYMMETRIC_GLOBALS=off", "SHMEM_INFO=1"});
  EXPECT_NE(job.exit.code, 0);
  EXPECT_THAT(job.output, HasSubstr("global variables: not symmetric: PE 0: SHMEM_SYMMETRIC_GLOBALS=off"));
  EXPECT_THAT(job.output,
              HasSubstr("shmem_signal_set: 8 bytes at the given address are not inside the symmetric heap"));
}

Outcome process_pes(int pes, std::vector<std::string> arguments, Seconds limit = Seconds{120}) {
  arguments.insert(arguments.begin(), test_program("globals_process_pes"));
  return run(oshrun(pes, "off", std::move(arguments)), {"SHMEM_INFO=1"}, limit);
}

TEST(Globals, TakeOnlyTheMemoryThatIsUsed) {
  const auto job = process_pes(2, {"sparse"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(Globals, AreNotSharedWithChildren) {
  const auto job = process_pes(2, {"children"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(Globals, AreNotSharedWithChildrenOfSeveralThreads) {
  const auto job = process_pes(2, {"forking-threads", std::to_string(repeats(100, 5000))});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(Globals, DoNotDisturbStartedPrograms) {
  const auto job = process_pes(2, {"programs"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST(Globals, HideNoCrash) {
  const auto job = process_pes(1, {"crash"});
  EXPECT_EQ(job.exit.code, 128 + SIGSEGV) << job.output;
  EXPECT_THAT(job.output, HasSubstr("about to store"));
}

TEST(Globals, HideNoCrashFromTheProgramsHandler) {
  const auto job = process_pes(1, {"handled-crash"});
  EXPECT_EQ(job.exit.code, 44) << job.output;
  EXPECT_THAT(job.output, HasSubstr("the program's own handler"));
}

TEST(Globals, LeaveNoSignalHandler) {
  for (const std::string backtrace : {"0", "1"}) {
    const auto job = run(oshrun(2, "off", {test_program("globals_process_pes"), "handlers"}),
                         {"SHMEM_INFO=1", "SHMEM_BACKTRACE=" + backtrace});
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

TEST(Globals, AreSymmetricOnNoPeIfOneCannotShareThem) {
  const auto job = process_pes(3, {"forbidden"});
  if (job.exit.code == 77) {
    GTEST_SKIP() << job.output;
  }
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("global variables: not symmetric: PE 1: cannot put shared memory"));
}

}  // namespace
