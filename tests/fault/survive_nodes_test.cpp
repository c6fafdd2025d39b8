// SPDX-License-Identifier: Apache-2.0
// Jobs on several nodes that go on when PEs die: those that are left agree on who they are.
#include <random>

#include "tests/fault/survivors.hpp"

namespace {

using survivors::count_of;
using survivors::expect_agreement;
using survivors::run_clean_nodes;
using namespace test_support;
using namespace testing;

class SurviveOnNodes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!has_network()) {
      GTEST_SKIP() << kNoNetwork;
    }
    const auto job =
        run_pes(2, "off", test_support::on_nodes("/ 1", {"shmem_pes", "survive", "race"}), {}, survivors::kLimit);
    ASSERT_TRUE(job.exit.clean()) << job.output;
  }
};

TEST_F(SurviveOnNodes, TheRestOfTheWorldIsAFullTeam) {
  struct Case {
    int nodes, each;
    std::vector<std::string> dead;
    const char* rest;
  };
  for (const Case& one : std::vector<Case>{{2, 2, {"1"}, "0,2,3"},               // not the leader of its node
                                           {2, 2, {"2"}, "0,1,3"},               // the leader
                                           {2, 3, {"1"}, "0,2,3,4,5"},           // not evenly spaced on a node
                                           {2, 3, {"1", "3"}, "0,2,4,5"},        // on each node
                                           {2, 2, {"2", "3"}, "0,1"},            // all of a node
                                           {3, 2, {"0", "1", "4"}, "2,3,5"}}) {  // of the first node
    std::vector<std::string> arguments{"die"};
    arguments.insert(arguments.end(), one.dead.begin(), one.dead.end());
    const auto job = run_clean_nodes(one.nodes, one.each, "off", arguments);
    EXPECT_EQ(count_of(job.output, std::string(" -> ") + one.rest + ", team "),
              one.nodes * one.each - static_cast<int>(one.dead.size()))
        << job.output;
  }
}

TEST_F(SurviveOnNodes, BarriersGoThroughANewGroupOfTheDevice) {
  for (const char* dead : {"1", "2"}) {
    const auto job = run_clean_nodes(2, 3, "fake", {"die", dead}, {"SHMEM_GBA=require"});
    EXPECT_EQ(count_of(job.output, "by gba"), 5) << job.output;
  }
}

TEST_F(SurviveOnNodes, AllGetTheSameTeamWhenOthersDieMeanwhile) {
  std::mt19937 random(std::random_device{}());
  for (int i = 0; i < repeats(4, 300); ++i) {
    // PE 2 notices the first death after half a second, and the new team is ready some milliseconds later.
    const auto micros = [&] { return std::to_string(450'000 + random() % 150'000); };
    const bool device = i % 2 == 1;
    const auto job = run_clean_nodes(3, 2, device ? "fake" : "off", {"race", "3:0", "1:" + micros(), "4:" + micros()});
    EXPECT_EQ(count_of(job.output, "end: 0,2,5 -> 0,2,5"), 3) << job.output;
    expect_agreement(job.output);
    if (HasFailure()) {
      break;
    }
  }
}

TEST_F(SurviveOnNodes, OneThatHangsIsLeftOutAndDoesNotComeBack) {
  for (const char* gba : {"off", "fake"}) {
    survivors::expect_left_out([&](int seconds) {
      return survivors::run_nodes(2, 2, gba, {"hang", "1"}, survivors::timeout(seconds));
    });
  }
}

TEST_F(SurviveOnNodes, WaitsForWordsNoticeADeadPe) {
  const auto job = run_clean_nodes(2, 2, "off", {"wait", "1"});
  EXPECT_EQ(count_of(job.output, "wait: 0,1,2,3 -> 0,2,3, team "), 3) << job.output;
}

}  // namespace
