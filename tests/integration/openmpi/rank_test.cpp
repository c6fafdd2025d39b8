// SPDX-License-Identifier: Apache-2.0
// Ranks that do not enter a barrier or die in it: waiting ranks get the missing rank's number, and no process is left.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::Fails;
using openmpi_test::Mpirun;
using openmpi_test::Options;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::none_matching;
using test_support::Outcome;
using test_support::Process;
using testing::AllOf;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

class Rank : public Mpirun {
 protected:
  /// Jobs of three ranks that wait until the timeout, all at the same time.
  [[nodiscard]] std::vector<Outcome> run_at_once(const std::vector<std::vector<std::string>>& commands,
                                                 int seconds) const {
    const FakeDevice device;
    const Options options{"--mca", "coll_gba_device_path", device.path(),
                          "--mca", "coll_gba_timeout",     std::to_string(seconds)};
    std::vector<std::unique_ptr<Process>> jobs;
    for (const auto& command : commands) {
      const std::string file = entered() + std::to_string(jobs.size());
      jobs.push_back(start_program("openmpi_barrier_ranks", 3, file, command, options));
    }
    std::vector<Outcome> outcomes;
    outcomes.reserve(jobs.size());
    for (auto& job : jobs) {
      outcomes.push_back(end(*job));
    }
    return outcomes;
  }

  /// Expects the same of all the jobs.
  template <typename Expected>
  void expect_of_each(const std::vector<std::vector<std::string>>& commands, const Expected& expected) const {
    const testing::Matcher<const std::vector<Outcome>&> all = Each(expected);
    EXPECT_THAT(test_support::with_timeouts([&](int seconds) { return run_at_once(commands, seconds); },
                                            [&](const auto& jobs) { return all.Matches(jobs); }),
                all);
  }
};

/// In blocking and non-blocking barriers, while the members agree on the device or in a barrier of the device.
TEST_F(Rank, ThatIsMissingIsNamedAndTheBarrierFails) {
  expect_of_each({{"late", "1", "0", "0"}, {"late", "1", "0", "2"}, {"late", "1", "1", "0"}, {"late", "1", "1", "2"}},
                 Fails(ContainsRegex(" has taken [0-9]+ s \\(coll_gba_timeout\\); ranks that have not come: 1\n")));
}

/// Only the first rank knows which rank is missing in the agreement on the device.
TEST_F(Rank, ThatIsFirstAndMissingIsNamed) {
  expect_of_each({{"late", "0", "0", "0"}, {"late", "0", "0", "1"}},
                 Fails(HasSubstr("ranks that have not come: 0, or one that it waits for\n")));
}

/// Calls that failed are not barriers that a rank has missed.
TEST_F(Rank, ThatIsLateCanStillSynchronise) {
  expect_of_each({{"again", "0"}, {"again", "1"}},
                 Passes(AllOf(HasSubstr(", fallen back 0,"), HasSubstr("ranks that have not come: 2\n"))));
}

/// mpirun ends the job, and the next job can use the device.
TEST_F(Rank, ThatDiesEndsTheJob) {
  const FakeDevice device({"--group-limit", "32"});  // of one port, which has them all
  for (const char* before : {"0", "3"}) {
    const auto job = run(3, device.path(), {"dies", "1", before});
    EXPECT_FALSE(job.exit.clean());
    // Open MPI 5.0's mpirun breaks the line.
    EXPECT_THAT(job.output, ContainsRegex("exited on[ \n]signal 9"));
    EXPECT_TRUE(none_matching(entered()));
  }
  const auto next = run(3, device.path(), {"many", "32", "1"});
  EXPECT_TRUE(next.exit.clean()) << next.output;
  EXPECT_THAT(next.output, AllOf(Not(HasSubstr("got no group")), HasSubstr(", fallen back 0,")));
}

/// Here mpirun does not end the other ranks.
TEST_F(Rank, ThatDiesIsNamed) {
  const FakeDevice device;
  const auto names = [](const Outcome& job) {
    return job.output.find("ranks that have not come: 1\n") != std::string::npos;
  };
  const auto run_for = [&](int seconds) {
    return run(3, device.path(), {"dies", "1", "3"},
               {"--enable-recovery", "--mca", "coll_gba_timeout", std::to_string(seconds)});
  };
  const auto job = test_support::with_timeouts(run_for, names);
  EXPECT_TRUE(names(job)) << job.output;
  EXPECT_TRUE(none_matching(entered()));
}

}  // namespace
