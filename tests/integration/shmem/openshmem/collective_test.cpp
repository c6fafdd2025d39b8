// SPDX-License-Identifier: Apache-2.0
// Collective calls: by each algorithm that SHMEM_COLLECTIVE_TUNING can choose, on nodes, without memory; small calls of
// teams and active sets, mixed in a drawn order (right results, unchanged pSync, no allocation); and the instructions
// of small calls that wait for no other PE.
#include <filesystem>
#include <fstream>

#include "tests/support/network.hpp"
#include "tests/support/pe.hpp"
#include "tests/support/sanitized.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

/// The variable that names a table of these limits for all collective calls.
std::string tuning(const TempDir& folder, const std::string& limits) {
  std::ofstream table(folder.file("table"));
  table << "libshmem-collective-tuning 1\n";
  for (const char* collective : {"broadcast", "collect", "fcollect", "alltoall", "reduce", "scan"}) {
    for (const char* load : {"alone", "oversubscribed"}) {
      table << collective << ' ' << load << " * " << limits << '\n';
    }
  }
  return "SHMEM_COLLECTIVE_TUNING=" + folder.file("table");
}

class CollectiveWays : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(CollectiveWays, GiveTheSameResults) {
  const auto [limits, pes] = GetParam();
  const TempDir folder;
  run_clean(pes, "off", {"openshmem_c_pes", "collective", "few"}, {tuning(folder, limits)});
}

// Eager calls are covered by the other tests: the built-in table prefers them.
INSTANTIATE_TEST_SUITE_P(All, CollectiveWays,
                         Combine(Values("eager=0", "eager=0 scatter-allgather=0", "eager=8 scatter-allgather=9"),
                                 Values(3)));

/// The placement of PEs on nodes: "/ N" puts N consecutive PEs on a node, "% N" deals them to N nodes in turn.
class CollectivesOnNodes : public testing::TestWithParam<std::tuple<std::string, int>> {};

/// Skips the test if there are no jobs on several nodes here.
Outcome run_on_nodes(const std::string& node, int pes, const Words& command) {
  auto job = run_pes(pes, "off", on_nodes(node, command), {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"});
  for (const char* reason : {"libucp.so.0 cannot be used", "built without UCX"}) {
    if (job.output.find(reason) != std::string::npos) {
      [&] { GTEST_SKIP() << reason; }();
    }
  }
  return job;
}

void expect_clean_on_nodes(const std::string& node, int pes, const Words& command) {
  const auto job = run_on_nodes(node, pes, command);
  EXPECT_TRUE(Test::IsSkipped() || job.exit.clean()) << job.output;
}

TEST_P(CollectivesOnNodes, GiveTheSameResults) {
  const auto [node, pes] = GetParam();
  expect_clean_on_nodes(node, pes, {"openshmem_c_pes", "collective", "few"});
}

// If PEs are dealt to nodes in turn, the blocks of a node's PEs are not adjacent in the result.
TEST(LargeCollects, NeedNoSecondCopyOfTheResult) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer needs more memory than the limit";
  }
  if (ucx_sends_at_once()) {
    GTEST_SKIP() << "this version of UCX keeps messages that come early in memory of its own";
  }
  expect_clean_on_nodes("% 2", 4, {"shmem_pes", "large_collect", "few"});
}

struct Short {
  const char* call;
  const char* message;
};
class ShortOfMemory : public testing::TestWithParam<Short> {};

TEST_P(ShortOfMemory, IsAnErrorThatNamesTheSize) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer has operators of its own";
  }
  const auto job = run_on_nodes("% 2", 4, {"short_of_memory_pes", GetParam().call});
  if (IsSkipped()) {
    return;
  }
  EXPECT_EQ(job.exit.code, 3) << job.output;
  EXPECT_THAT(job.output, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Calls, ShortOfMemory,
                         Values(Short{"alltoall", "there is no memory for the 65536 bytes in which the blocks"},
                                Short{"alltoalls",
                                      "there is no memory for the 65480 bytes of a block of another node's PE"},
                                Short{"scan", "there is no memory for the 163840 bytes in which a scan"},
                                Short{"fcollect", "there is no memory for the 131072 bytes that put"}),
                         [](const auto& test) { return std::string(test.param.call); });

// PEs 0, 1, 4, 5 and 2, 3, as placed by a host file that names a node twice.
TEST(UnevenNodes, HaveSeveralTeamsOfPesThatShareMemory) {
  expect_clean_on_nodes("/ 2 % 2", 6, {"openshmem_c_pes", "team", "few"});
}

// PEs 3 and 6 are on another node, so PEs 0, 2 and 4 have the numbers 0, 2 and 3 on theirs.
TEST(UnevenNodes, HaveTeamsOfAnyEvenlySpacedPes) {
  const std::string node = "== 3 || OSHRUN_RANK == 6";
  expect_clean_on_nodes(node, 7, {"openshmem_c_pes", "collective", "few"});
  expect_clean_on_nodes(node, 7, {"openshmem_c_pes", "team", "few"});
}

// One PE per node; 2 + 1; 3 + 1; 2 + 2; 3 + 2 in turn; 3 + 2, not evenly spaced.
INSTANTIATE_TEST_SUITE_P(All, CollectivesOnNodes,
                         Values(std::tuple("/ 1", 3), std::tuple("/ 2", 3), std::tuple("/ 3", 4), std::tuple("/ 2", 4),
                                std::tuple("% 2", 5), std::tuple("/ 2 % 2", 5)));

// ---- Small calls ----

constexpr const char* kSerialized = "2";  // SHMEM_THREAD_SERIALIZED
constexpr const char* kMultiple = "3";    // SHMEM_THREAD_MULTIPLE: active sets use their pSync

std::string calls() {
  return std::to_string(repeats(400, 20000));
}

void expect_clean(int pes, std::vector<std::string> arguments, const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), "small_collective_pes");
  run_clean(pes, "off", arguments, environment, Seconds{240});
}

class SmallCollectives : public testing::TestWithParam<int> {};

TEST_P(SmallCollectives, OfTeamsAndSetsMixAndAllocateNothing) {
  for (const char* seed : {"1", "2"}) {
    std::vector<std::string> arguments{calls(), seed, kSerialized};
    if (!kSanitized) {
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

INSTANTIATE_TEST_SUITE_P(Pes, SmallCollectives, Values(1, 2, 3, 4, 5, 7));

class EagerLimits : public testing::TestWithParam<int> {};

TEST_P(EagerLimits, GiveTheSameResults) {
  const TempDir folder;
  const std::string table = tuning(folder, "eager=" + std::to_string(GetParam()));
  for (const int pes : {2, 3, 7}) {
    expect_clean(pes, {calls(), "5", kSerialized}, {table});
  }
}

INSTANTIATE_TEST_SUITE_P(Bytes, EagerLimits, Values(0, 8, 96, 97, 1024));

TEST(EagerLimit, IsTheSizeOfAPlace) {
  const TempDir folder;
  std::ofstream(folder.file("table")) << "libshmem-collective-tuning 1\nreduce alone * eager=1025\n";
  const auto job =
      run_pes(1, "off", {"small_collective_pes", "1", "1", "0"}, {"SHMEM_COLLECTIVE_TUNING=" + folder.file("table")});
  EXPECT_FALSE(job.exit.clean());
  EXPECT_THAT(job.output, HasSubstr("\"eager=1025\" is not eager=N with N from 0 to 1024"));
}

// ---- Instructions ----

constexpr long kRounds = 200;

/// The largest count of the files that callgrind has left in a folder, one for each PE; 0: none.
long largest_count(const std::string& folder) {
  long largest = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      const std::string head = line.substr(0, line.find(' ') + 1);
      if (head == "summary: " || head == "totals: ") {
        largest = std::max(largest, std::stol(line.substr(head.size())));
      }
    }
  }
  return largest;
}

struct Call {
  const char* name;
  const char* routine;
  long most;
};

class SmallCall : public testing::TestWithParam<Call> {};

TEST_P(SmallCall, TakesFewInstructions) {
  if (kSanitized) {
    GTEST_SKIP() << "a sanitizer adds instructions";
  }
  if (!run({"/bin/sh", "-c", "command -v valgrind"}).exit.clean()) {
    GTEST_SKIP() << "valgrind is not installed (scripts/install-deps.sh test installs it)";
  }
  const TempDir folder;
  const auto job =
      run(oshrun(2, "off",
                 {"valgrind", "--tool=callgrind", "--collect-atstart=no",
                  std::string("--toggle-collect=*") + GetParam().routine, "--callgrind-out-file=" + folder.file("%p"),
                  test_program("shmem_pes"), "small_call", GetParam().name, std::to_string(kRounds)}),
          {}, Seconds{200});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  const long each = (largest_count(folder.file("")) + kRounds - 1) / kRounds;
  std::printf("%s: %ld instructions, at most %ld\n", GetParam().routine, each, GetParam().most);
  EXPECT_GT(each, 0) << job.output;
  EXPECT_LE(each, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(All, SmallCall,
                         testing::Values(Call{"broadcast", "shmem_long_broadcast", 370},
                                         Call{"scan", "shmem_long_sum_inscan", 490},
                                         Call{"set", "shmem_broadcast64", 400}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
