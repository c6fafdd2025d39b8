// SPDX-License-Identifier: Apache-2.0
// The reports of a job on its barriers: SHMEM_TRACE and SHMEM_INFO.
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/json.hpp"
#include "tests/support/pe.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr int kPes = 3;
constexpr int kRounds = 200;

Json read(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

class Trace : public testing::TestWithParam<const char*> {};

TEST_P(Trace, HasEveryBarrierOfEveryPe) {
  TempDir dir;
  const std::string path = dir.file("trace.json");
  const auto job = run_pes(kPes, GetParam(), {"barrier_pes", std::to_string(kRounds)}, {"SHMEM_TRACE=" + path});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  std::map<int, std::map<std::uint64_t, Json>> barriers;  // by PE and number
  std::map<int, std::string> names;
  for (const auto& event : read(path)) {
    if (event["name"] == "process_name") {
      names[event["pid"].get<int>()] = event["args"]["name"];
    } else if (event["ph"] == "X") {
      EXPECT_EQ(event["args"]["team"], 0);
      EXPECT_GE(event["ts"], 0.0);
      const auto number = event["args"]["number"].get<std::uint64_t>();
      EXPECT_TRUE(barriers[event["pid"].get<int>()].emplace(number, event).second);
    }
  }
  ASSERT_EQ(barriers.size(), kPes);
  EXPECT_EQ(names.size(), kPes);
  for (const auto& [number, event] : barriers[0]) {
    for (int pe = 1; pe < kPes; ++pe) {
      ASSERT_EQ(barriers[pe].count(number), 1U) << number;
      const Json& theirs = barriers[pe][number];
      EXPECT_EQ(theirs["args"]["last"], event["args"]["last"]);
      EXPECT_EQ(theirs["args"]["path"], event["args"]["path"]);
      // No PE leaves a barrier before the last one has entered it.
      EXPECT_LE(theirs["ts"].get<double>(), event["ts"].get<double>() + event["dur"].get<double>());
    }
  }
  EXPECT_GE(barriers[0].size(), static_cast<std::size_t>(kRounds));
  const std::string path_of_last = barriers[0].rbegin()->second["args"]["path"];
  EXPECT_EQ(path_of_last == "gba", std::string(GetParam()) == "fake") << path_of_last;
}

INSTANTIATE_TEST_SUITE_P(Devices, Trace, Values("off", "fake"), kNameByParameters);

TEST(Trace, IsValidWhenAPeIsKilled) {
  TempDir dir;
  const std::string path = dir.file("trace.json");
  Process job(oshrun(kPes, "off", {test_program("barrier_pes"), "1000000000"}), {"SHMEM_TRACE=" + path});
  ASSERT_TRUE(job.wait_for_output("PE 1 pid", Seconds{120})) << job.output();
  struct stat status {};
  while (::stat(path.c_str(), &status) != 0 || status.st_size < 300'000) {
    ASSERT_FALSE(job.wait(Seconds{0.01})) << job.output();
  }
  ASSERT_EQ(::kill(pid_of(job.output(), 1), SIGKILL), 0);
  ASSERT_TRUE(job.wait(Seconds{120})) << job.output();
  EXPECT_GT(read(path).size(), 1000U);
}

TEST(Trace, EndsTheJobAtItsStartIfItCannotBeWritten) {
  const auto job = run_pes(kPes, "off", {"barrier_pes", "10"}, {"SHMEM_TRACE=/no/such/folder/t"});
  EXPECT_EQ(job.exit.code, 1);
  EXPECT_THAT(job.output,
              HasSubstr("no trace: SHMEM_TRACE=/no/such/folder/t cannot be opened: No such file or directory"));
  EXPECT_THAT(job.output, Not(HasSubstr("early")));
}

TEST(Info, HasALineForEachTeamAtTheEnd) {
  const auto job = run_pes(kPes, "off", {"barrier_pes", std::to_string(kRounds)},
                           {"SHMEM_INFO=1", "SHMEM_BARRIER_ALGORITHM=central_counter"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  const auto found = first_match(
      job.output,
      "shmem: team 0 \\(3 PEs\\): (\\d+) barriers \\((\\d+) central_counter\\); PE 0 waited [0-9.]+ m?u?s on average, "
      "[0-9.]+ m?u?s at most; the members arrived within [0-9.]+ m?u?s on average, [0-9.]+ m?u?s at most; PE [0-2] "
      "arrived last "
      "most often, in \\d+ of (\\d+)\n");
  ASSERT_FALSE(found.empty()) << job.output;
  EXPECT_GE(std::stoi(found[1]), kRounds);
  EXPECT_EQ(found[1], found[2]);
  EXPECT_EQ(found[1], found[3]);
  // What comes after it depends on the machine.
  EXPECT_THAT(job.output, HasSubstr("shmem: processors: "));
}

TEST(Info, CountsOneInTheSingular) {
  const auto job = run_clean(1, "off", {"shmem_pes", "wrong", "counted"}, {"SHMEM_INFO=1"});
  EXPECT_THAT(job.output, HasSubstr("shmem: team 0 (1 PE: 0, stride 1): barrier "));
  EXPECT_THAT(job.output, HasSubstr("shmem: calls of the 1 PE of this node: 4 puts (124 bytes), 2 gets (8 bytes), "
                                    "5 atomics (40 bytes), 1 collective (16 bytes)\n"));
  EXPECT_FALSE(has_match(job.output, "\\b1 (PEs|nodes|barriers|puts|gets|atomics|collectives|bytes|times)\\b"))
      << job.output;
}

/// The first lines are the answers: which barrier, how many nodes, which processors. The last ones say what was done.
TEST(Info, LeadsWithItsAnswersAndEndsWithCounts) {
  const auto job = run_clean(kPes, "off", {"shmem_pes", "wrong", "counted"}, {"SHMEM_INFO=1", "SHMEM_NUMA=none"});
  std::istringstream stream(job.output);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  ASSERT_GT(lines.size(), 6U) << job.output;
  EXPECT_THAT(lines[0], HasSubstr("shmem: libshmem "));
  EXPECT_THAT(lines[1], HasSubstr("shmem: team 0 (3 PEs: 0, stride 1): barrier "));
  EXPECT_EQ(lines[2], "shmem: 1 node");
  EXPECT_THAT(lines[3], HasSubstr("shmem: processors: "));
  EXPECT_THAT(job.output, HasSubstr("SHMEM_NUMA=none (environment)"));
  EXPECT_THAT(job.output, Not(HasSubstr("SHMEM_HUGEPAGES="))) << "it has its default";
  EXPECT_THAT(job.output, Not(AnyOf(HasSubstr("team 1 "), HasSubstr("team 4096 ")))) << "they are not the program's";
  // Each PE: 3 puts of 8 bytes and one of 100, 2 gets of 4, 5 atomics of 8, and a broadcast of 16.
  EXPECT_THAT(job.output, HasSubstr("shmem: calls of the 3 PEs of this node: 12 puts (372 bytes), 6 gets (24 bytes), "
                                    "15 atomics (120 bytes), 3 collectives (48 bytes)\n"));
}

}  // namespace
