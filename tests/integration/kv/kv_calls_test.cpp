// SPDX-License-Identifier: Apache-2.0
// The C interface of kv_shuffle between two processes.
#include <gmock/gmock.h>

#include <cerrno>
#include <sstream>

#include "tests/support/process.hpp"
#include "tests/unit/kv/open_metrics.hpp"

namespace {

using test_support::Outcome;
using testing::AllOf;
using testing::HasSubstr;

Outcome run_pes(const std::string& how, const std::vector<std::string>& environment = {}) {
  std::vector<std::string> command{test_support::program("oshrun"),      "-n",   "2", "--gba", "off",
                                   test_support::test_program("kv_pes"), "calls"};
  if (!how.empty()) {
    command.push_back(how);
  }
  return test_support::run(command, environment, test_support::Seconds{300});
}

std::string line_of(int pe, int error, const std::string& text) {
  return "PE " + std::to_string(pe) + ": -" + std::to_string(error) + " " + text;
}

/// Expects both PEs to get their errors, and the next call to work.
void expect_errors(const std::string& how, const std::string& on_0, const std::string& on_1) {
  const Outcome outcome = run_pes(how);
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr(on_0), HasSubstr(on_1)));
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("PE 0: works"), HasSubstr("PE 1: works")));
}

TEST(KvCalls, MoveBlocksBetweenProcesses) {
  const Outcome outcome = run_pes("");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("PE 0: works"), HasSubstr("PE 1: works")));
}

TEST(KvCalls, SequencesAreCompleteWhereABalancedPlanPlacesThem) {
  const Outcome outcome = run_pes("balance");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("PE 0: sequence 0 is whole"), HasSubstr("PE 1: sequence 1 is whole"),
                                    HasSubstr("PE 1: sequence 2 is whole")));
}

TEST(KvCalls, TwoSendersAreRefusedOnBoth) {
  const std::string text = ", call 1 by pairs: global_shuffle_table: row 0 {1, send} and row 1 {0, send} both send";
  expect_errors("two-senders", line_of(0, EINVAL, "kv_shuffle: PE 0" + text),
                line_of(1, EINVAL, "kv_shuffle: PE 1" + text));
}

TEST(KvCalls, ABadTableOfTheSenderIsReportedToTheReceiver) {
  expect_errors("bad-block", line_of(0, EINVAL, "kv_shuffle: PE 0, call 1 by pairs: the move of block 8 of PE 0"),
                line_of(1, ECONNABORTED, "kv_shuffle: PE 1, call 1 by pairs: receiving from PE 0: PE 0 gave up"));
}

TEST(KvCalls, ABadCacheOfTheReceiverIsReportedToTheSender) {
  expect_errors(
      "not-symmetric",
      line_of(0, ECONNABORTED, "kv_shuffle: PE 0, call 1 by pairs: sending 1 block to PE 1: PE 1 gave up"),
      line_of(1, EINVAL, "kv_shuffle: PE 1, call 1 by pairs: the cache's k of 32768 bytes is not in symmetric memory"));
}

TEST(KvCalls, ANumberOfCoresThatCannotBeIsRefused) {
  expect_errors("no-cores", line_of(0, EINVAL, "kv_shuffle: cannot use -1 cores"),
                line_of(1, EINVAL, "kv_shuffle: cannot use -1 cores"));
}

TEST(KvCalls, DifferentNumbersOfCoresAreRefusedOnBoth) {
  expect_errors("other-cores",
                line_of(0, EINVAL, "shmem: PE 0: shmemx_kv_op_create: PE 1 has other options than this PE"),
                line_of(1, EINVAL, "shmem: PE 1: shmemx_kv_op_create: PE 0 has other options than this PE"));
}

TEST(KvCalls, NullPointersAreRefused) {
  for (const char* pe : {"PE 0", "PE 1"}) {
    expect_errors("null", std::string(pe) + ": create -22, destroy 0",
                  std::string(pe) + ": -22 shmem: shmemx_kv_shuffle: op is NULL");
    expect_errors("null", std::string(pe) + ": stats -22 -22, metrics -22 -22", "");
  }
}

TEST(KvCalls, CountersAndMetricsTellWhatAnOperatorHasDone) {
  const Outcome outcome = run_pes("count");
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  // With the shuffle that works at the end, which is not counted here.
  EXPECT_THAT(outcome.output,
              AllOf(HasSubstr("PE 0: 0, 2 shuffles, 3 blocks, 24576 bytes, 1 invalid, 0 aborted, 0 dead, "
                              "0 late, 0 other, took some time\n"),
                    HasSubstr("PE 1: 0, 2 shuffles, 0 blocks, 0 bytes, 0 invalid, 1 aborted, 0 dead, "
                              "0 late, 0 other, took ")));
  if (outcome.output.find("libmicrohttpd") != std::string::npos) {
    GTEST_SKIP() << outcome.output;
  }
  EXPECT_THAT(outcome.output, HasSubstr("PE 0: metrics " + std::to_string(-EALREADY)));
  std::istringstream lines(outcome.output);
  std::string answer;
  for (std::string line; std::getline(lines, line);) {
    answer += line.starts_with("page: ") ? line.substr(6) + "\n" : "";
  }
  const auto body = answer.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos) << outcome.output;
  const exchange_test::OpenMetrics metrics(answer.substr(body + 4), "pe");
  EXPECT_EQ(metrics.problem(), "") << answer;
  EXPECT_EQ(metrics.type("shmem_kv_sent_bytes"), "counter");
  EXPECT_EQ(metrics.value("shmem_kv_shuffles_total"), 2);
  EXPECT_EQ(metrics.value("shmem_kv_sent_blocks_total"), 3);
  EXPECT_EQ(metrics.value("shmem_kv_sent_bytes_total"), 24576);
  EXPECT_EQ(metrics.value("shmem_kv_failed_shuffles_total{cause=\"invalid\"}"), 1);
  EXPECT_EQ(metrics.value("shmem_kv_failed_shuffles_total{cause=\"aborted\"}"), 0);
  EXPECT_EQ(metrics.value("shmem_kv_shuffle_seconds_count"), 3);
}

TEST(KvCalls, ADeadPartnerEndsTheCall) {
  const Outcome outcome = run_pes("dies");
  EXPECT_EQ(outcome.exit.signal, 0) << outcome.output;
  EXPECT_NE(outcome.exit.code, 0);
  EXPECT_THAT(outcome.output, testing::Not(HasSubstr("PE 0: works")));
}

TEST(KvCalls, ALatePartnerEndsTheCallAfterTheTimeout) {
  const Outcome outcome = run_pes("late", {"SHMEM_BARRIER_TIMEOUT=5"});
  EXPECT_THAT(outcome.output,
              HasSubstr(line_of(0, ETIMEDOUT,
                                "kv_shuffle: PE 0, call 1 by pairs: sending 1 block to PE 1: waited for PE 1 to "
                                "be ready; it did not arrive in time (SHMEM_BARRIER_TIMEOUT)")));
}

}  // namespace
