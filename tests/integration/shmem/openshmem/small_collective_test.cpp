// SPDX-License-Identifier: Apache-2.0
// Small collective calls of teams and active sets, mixed in a drawn order: right results, unchanged pSync, no
// allocation; each way of making them.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/job.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::oshrun;
using test_support::run;
using test_support::Seconds;
using test_support::test_program;

constexpr const char* kSerialized = "2";  // SHMEM_THREAD_SERIALIZED
constexpr const char* kMultiple = "3";    // SHMEM_THREAD_MULTIPLE: active sets use their pSync

std::string calls() {
  return std::to_string(test_support::repeats(400, 20000));
}

void expect_clean(int pes, std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), test_program("small_collective_pes"));
  const auto job = run(oshrun(pes, "off", arguments), environment, Seconds{240});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

class SmallCollectives : public testing::TestWithParam<int> {};

TEST_P(SmallCollectives, OfTeamsAndSetsMixAndAllocateNothing) {
  for (const char* seed : {"1", "2"}) {
    std::vector<std::string> arguments{calls(), seed, kSerialized};
    if (!test_support::kSanitized) {
      arguments.emplace_back("allocations");  // a sanitizer has operators of its own
    }
    expect_clean(GetParam(), arguments);
  }
}

TEST_P(SmallCollectives, OfSetsUseTheirPsyncWithThreads) {
  expect_clean(GetParam(), {calls(), "3", kMultiple});
}

TEST_P(SmallCollectives, AreTheSameWithChecks) {
  expect_clean(GetParam(), {"150", "4", kSerialized}, {"SHMEM_DEBUG=1"});
}

INSTANTIATE_TEST_SUITE_P(Pes, SmallCollectives, testing::Values(1, 2, 3, 4, 5, 7));

class EagerLimits : public testing::TestWithParam<int> {};

TEST_P(EagerLimits, GiveTheSameResults) {
  const test_support::TempDir folder;
  std::ofstream table(folder.file("table"));
  table << "libshmem-collective-tuning 1\n";
  for (const char* collective : {"broadcast", "collect", "fcollect", "alltoall", "reduce", "scan"}) {
    for (const char* load : {"alone", "oversubscribed"}) {
      table << collective << ' ' << load << " * eager=" << GetParam() << '\n';
    }
  }
  table.close();
  for (const int pes : {2, 3, 7}) {
    expect_clean(pes, {calls(), "5", kSerialized}, {"SHMEM_COLLECTIVE_TUNING=" + folder.file("table")});
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, EagerLimits, testing::Values(0, 8, 96, 97, 1024));

TEST(EagerLimit, IsTheSizeOfAPlace) {
  const test_support::TempDir folder;
  std::ofstream(folder.file("table")) << "libshmem-collective-tuning 1\nreduce alone * eager=1025\n";
  const auto job = run(oshrun(1, "off", {test_program("small_collective_pes"), "1", "1", "0"}),
                       {"SHMEM_COLLECTIVE_TUNING=" + folder.file("table")}, Seconds{60});
  EXPECT_FALSE(job.exit.clean());
  EXPECT_NE(job.output.find("\"eager=1025\" is not eager=N with N from 0 to 1024"), std::string::npos) << job.output;
}

}  // namespace
