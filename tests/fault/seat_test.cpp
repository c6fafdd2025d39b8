// SPDX-License-Identifier: Apache-2.0
// Jobs in which a new process takes the place of a PE that has died.
#include "tests/fault/survivors.hpp"

namespace {

using survivors::count_of;
using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

Outcome run_job(int pes, const std::string& gba, const std::string& restarts, Words arguments,
                const Words& environment = {}) {
  const TempDir folder;
  arguments.insert(arguments.begin() + 1, folder.file("processes"));
  arguments.insert(arguments.begin(), {"--restart", restarts, test_program("shmem_pes"), "seat"});
  return run(oshrun(pes, gba, arguments), environment, survivors::kLimit);
}

Outcome run_clean(int pes, const std::string& gba, const std::string& restarts, const Words& arguments,
                  const Words& environment = {}) {
  auto job = run_job(pes, gba, restarts, arguments, environment);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  return job;
}

TEST(Seat, ANewProcessIsAFullMember) {
  for (const auto& victims : std::vector<std::vector<std::string>>{{"once", "1"}, {"once", "0", "3"}}) {
    const auto job = run_clean(4, "off", "1", victims);
    const int dead = static_cast<int>(victims.size()) - 1;
    EXPECT_EQ(count_of(job.output, "grown: 4 members, old"), 4 - dead) << job.output;
    EXPECT_EQ(count_of(job.output, "grown: 4 members, new"), dead) << job.output;
    EXPECT_EQ(count_of(job.output, "and it starts again (1 of 1)"), dead) << job.output;
  }
}

TEST(Seat, BarriersGoThroughTheDevice) {
  const auto job = run_clean(4, "fake", "1", {"once", "2"}, {"SHMEM_GBA=require"});
  EXPECT_EQ(count_of(job.output, "by gba"), 4) << job.output;
}

TEST(Seat, ProcessesThatDieAtAnyMomentAreReplaced) {
  const std::vector<std::vector<std::string>> victims{{"1", "3"}, {"0", "2"}, {"0", "1", "2"}};
  for (int i = 0; i < repeats(4, 200); ++i) {
    std::vector<std::string> arguments{"often", "4"};
    const auto& those = victims[static_cast<std::size_t>(i) % victims.size()];
    arguments.insert(arguments.end(), those.begin(), those.end());
    const auto job = run_clean(4, i % 2 == 1 ? "fake" : "off", "4", arguments);
    EXPECT_EQ(count_of(job.output, "end: 4 members"), 4) << job.output;
    if (HasFailure()) {
      break;
    }
  }
}

TEST(Seat, OneThatHangsIsReplaced) {
  const auto is_replaced = [](const Outcome& job) {
    return job.exit.clean() && count_of(job.output, "grown: 4 members, old") == 3 &&
           count_of(job.output, "grown: 4 members, new") == 1 &&
           count_of(job.output, "the other PEs have left it out; killing it to start it again") == 1 &&
           count_of(job.output, "and it starts again (1 of 1)") == 1;
  };
  for (const char* gba : {"off", "fake"}) {
    const auto job = with_timeouts(
        [&](int seconds) {
          return run_job(4, gba, "1", {"hang", "2"}, survivors::timeout(seconds));
        },
        is_replaced);
    EXPECT_TRUE(is_replaced(job)) << job.output;
  }
}

TEST(Seat, WithoutANewProcessTheOthersGoOn) {
  const auto goes_on = [](const Outcome& job) {
    return job.exit.clean() && count_of(job.output, "left: 2 members, old") == 2 &&
           count_of(job.output, "the others go on without it") > 0;
  };
  const auto run_for = [](int seconds) {
    return run_job(3, "off", "0", {"once", "1"}, {"SHMEM_BOOTSTRAP_TIMEOUT=" + std::to_string(seconds)});
  };
  const auto job = with_timeouts(run_for, goes_on);
  EXPECT_TRUE(goes_on(job)) << job.output;
}

}  // namespace
