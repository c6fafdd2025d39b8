// SPDX-License-Identifier: Apache-2.0
// Invalid calls of kv_shuffle between real PEs: reported on all of them, with nothing moved (kv_pes bad_calls).
#include <gmock/gmock.h>

#include <cerrno>

#include "tests/integration/kv/kv_nodes.hpp"
#include "tests/support/job.hpp"

namespace {

using test_support::oshrun;
using test_support::Outcome;
using test_support::Seconds;
using test_support::test_program;
using testing::HasSubstr;

TEST(KvBadCalls, AreRefusedOnAllPesWithNothingMoved) {
  for (const char* gba : {"off", "fake"}) {
    // SHMEM_DEBUG makes the library check its own calls too.
    const Outcome outcome = test_support::run(oshrun(4, gba, {test_program("kv_pes"), "bad_calls"}),
                                              {*gba == 'o' ? "SHMEM_DEBUG=1" : "SHMEM_DEBUG=0"}, Seconds{300});
    EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
    for (const char* pe : {"PE 0", "PE 1", "PE 2", "PE 3"}) {
      EXPECT_THAT(outcome.output, HasSubstr(std::string(pe) + ": 0 wrong\n"));
    }
  }
}

TEST(KvBadCalls, AreRefusedInAForkedProcess) {
  const Outcome outcome = test_support::run(oshrun(1, "off", {test_program("kv_pes"), "fork"}), {}, Seconds{300});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST(KvBadCalls, AreRefusedBetweenNodes) {
  if (!kv_test::has_network()) {
    GTEST_SKIP() << "UCX (libucx0) is not installed";
  }
  const auto program = kv_test::on_nodes(2, {test_program("kv_pes"), "bad_calls"});
  const Outcome outcome = test_support::run(oshrun(4, "off", program), {}, Seconds{300});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  for (const char* pe : {"PE 0", "PE 1", "PE 2", "PE 3"}) {
    EXPECT_THAT(outcome.output, HasSubstr(std::string(pe) + ": 0 wrong\n"));
  }
}

TEST(KvBadCalls, CopiesIntoUnmappedPrivateMemoryAreReportedOnAllPes) {
  const Outcome outcome = test_support::run(oshrun(3, "off", {test_program("kv_pes"), "private"}), {}, Seconds{300});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

/// All PEs end, although only SHMEM_BARRIER_TIMEOUT limits their waits.
Outcome when_timed_out(const char* how) {
  Outcome outcome = test_support::run(oshrun(4, "off", {test_program("kv_pes"), "bad_calls", how}),
                                      {"SHMEM_BARRIER_TIMEOUT=5"}, Seconds{300});
  for (const char* pe : {"PE 0", "PE 1", "PE 2", "PE 3"}) {
    EXPECT_THAT(outcome.output, HasSubstr(std::string(pe) + ": over\n"));
  }
  return outcome;
}

/// Expects that the wait of `pe` for `whom` timed out.
void expect_waited(const std::string& output, int pe, const std::string& whom) {
  EXPECT_THAT(output, testing::ContainsRegex("PE " + std::to_string(pe) + ": -" + std::to_string(ETIMEDOUT) +
                                             " [^\n]*" + whom));
}

TEST(KvBadCalls, ALateMemberIsNamedAfterTheTimeout) {
  const auto output = when_timed_out("late").output;
  for (const int pe : {0, 2, 3}) {
    expect_waited(output, pe, "PE 1");
  }
  EXPECT_THAT(output, HasSubstr("PE 1: -" + std::to_string(ECONNABORTED) + " kv_shuffle: PE 1, call 1: PE 0 gave up"));
  EXPECT_THAT(output, testing::Not(HasSubstr("WRONG")));
}

TEST(KvBadCalls, ALatePartnerIsNamedAfterTheTimeout) {
  const auto output = when_timed_out("late-pairs").output;
  expect_waited(output, 0, "PE 1");
  for (const char* pe : {"PE 2: 0 \n", "PE 3: 0 \n"}) {
    EXPECT_THAT(output, HasSubstr(pe));
  }
}

TEST(KvBadCalls, ALateSenderDoesNotSendToAReceiverThatHasGivenUp) {
  const auto output = when_timed_out("late-sender-pairs").output;
  expect_waited(output, 1, "PE 0");
  EXPECT_THAT(output, HasSubstr("PE 0: -" + std::to_string(ECONNABORTED) + " kv_shuffle: PE 0, call 1 by pairs"));
  EXPECT_THAT(output, testing::Not(HasSubstr("WRONG")));
}

TEST(KvBadCalls, AMemberThatMakesFewerCallsIsNamedAfterTheTimeout) {
  const auto output = when_timed_out("once-more").output;
  EXPECT_THAT(output, HasSubstr("PE 1: 0 \n"));
  for (const int pe : {0, 2, 3}) {
    expect_waited(output, pe, "PE 1");
  }
}

TEST(KvBadCalls, APartnerThatMakesFewerCallsIsNamedAfterTheTimeout) {
  const auto output = when_timed_out("once-more-pairs").output;
  EXPECT_THAT(output, HasSubstr("PE 1: 0 \n"));
  expect_waited(output, 0, "PE 1");
}

TEST(KvBadCalls, PairsOnOnePeAndAPlanOfAllOnTheOthersFailOnAll) {
  const auto output = when_timed_out("mixed").output;
  for (const char* pe : {"PE 0: -", "PE 1: -", "PE 2: -", "PE 3: -"}) {
    EXPECT_THAT(output, HasSubstr(pe));
  }
}

}  // namespace
