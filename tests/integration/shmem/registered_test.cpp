// SPDX-License-Identifier: Apache-2.0
// Memory that a program has already, as symmetric memory: on one node and on several.
#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

constexpr Seconds kLimit{120};

/// A node for every `pes_a_node` PEs.
void expect_clean_on_nodes(int pes, int pes_a_node, const std::string& kind) {
  if (!has_network()) {
    GTEST_SKIP() << kNoNetwork;
  }
  const auto node = "/ " + std::to_string(pes_a_node);
  run_clean(pes, "off", on_nodes(node, {"shmem_pes", "registered", kind, "nodes"}), {}, kLimit);
}

class Registered : public testing::TestWithParam<const char*> {};

TEST_P(Registered, IsUsedLikeTheSymmetricHeap) {
  run_clean(3, "off", {"shmem_pes", "registered", GetParam()}, {}, kLimit);
}

TEST_P(Registered, IsReachedFromOtherNodes) {
  expect_clean_on_nodes(4, 2, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Registered, Values("given", "found", "named", "private", "mixed", "last"),
                         kNameByParameters);

TEST(RegisteredMemory, OfOnePeIsItsOwn) {
  for (const char* kind : {"given", "private"}) {
    run_clean(1, "off", {"shmem_pes", "registered", kind}, {}, kLimit);
  }
}

TEST(RegisteredMemory, PassesTheChecksOfArguments) {
  for (const char* kind : {"given", "mixed"}) {
    run_clean(2, "off", {"shmem_pes", "registered", kind}, {"SHMEM_DEBUG=1"}, kLimit);
  }
}

TEST(RegisteredMemory, ThatIsPrivateHasItsWordsChangedFromOtherNodes) {
  for (const char* kind : {"private", "mixed"}) {
    expect_clean_on_nodes(2, 1, kind);
  }
}

TEST(RegisteredMemory, WhichIsWrongIsAnErrorOnAllPes) {
  run_clean(3, "off", {"shmem_pes", "registered_bad", "refuse"}, {}, kLimit);
}

TEST(RegisteredMemory, LeavesNothing) {
  run_clean(2, "off", {"shmem_pes", "registered_bad", "repeat"}, {}, kLimit);
}

TEST(RegisteredMemory, OfAPeThatDiesIsAnErrorOfTheOthers) {
  for (int i = 0; i < 4; ++i) {
    const auto done = run_pes(4, "off", {"shmem_pes", "registered_bad", "die", std::to_string(1100 * i)}, {}, kLimit);
    EXPECT_EQ(done.exit.code, 0) << done.output;
    EXPECT_EQ(done.exit.signal, 0) << done.output;
    for (const int pe : {0, 2, 3}) {
      EXPECT_THAT(done.output, HasSubstr("PE " + std::to_string(pe) + " ends: shmem: "));
    }
  }
}

TEST(RegisteredMemory, OfAPeThatLeftBecauseAnotherDiedNamesTheOther) {
  auto command = oshrun(3, "off", {test_program("shmem_pes"), "registered_bad", "leave"});
  command.insert(command.begin() + 1, {"--grace", "100"});
  const auto done = run(command, {}, kLimit);
  EXPECT_EQ(done.exit.code, 128 + SIGKILL) << done.output;
  EXPECT_THAT(done.output, ContainsRegex("cannot copy registered memory of PE 2 [^\n]*: its process has ended; the job "
                                         "was ended: PE 1 [^\n]*was killed by signal 9"));
}

}  // namespace
