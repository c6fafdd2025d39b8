// SPDX-License-Identifier: Apache-2.0
// Ranks that do not enter a barrier or die in it: waiting ranks get the missing rank's number, and no process is left.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::Mpirun;
using openmpi_test::Options;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::Outcome;
using test_support::Process;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const Options kTimeout{"--mca", "coll_gba_timeout", "3"};

/// Processes of this machine with `text` on their command line.
std::vector<std::string> processes_with(const std::string& text) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string line{std::istreambuf_iterator<char>(file), {}};
    if (line.find(text) != std::string::npos) {
      found.push_back(entry.path().filename().string() + ": " + line);
    }
  }
  return found;
}

class Rank : public Mpirun {
 protected:
  /// Jobs of three ranks that wait until the timeout, all at the same time.
  [[nodiscard]] std::vector<Outcome> run_at_once(const std::vector<std::vector<std::string>>& commands) const {
    const FakeDevice device;
    Options options{"--mca", "coll_gba_device_path", device.path()};
    options.insert(options.end(), kTimeout.begin(), kTimeout.end());
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
};

/// In blocking and non-blocking barriers, while the members agree on the device or in a barrier of the device.
TEST_F(Rank, ThatIsMissingIsNamedAndTheBarrierFails) {
  for (const auto& job : run_at_once(
           {{"late", "1", "0", "0"}, {"late", "1", "0", "2"}, {"late", "1", "1", "0"}, {"late", "1", "1", "2"}})) {
    EXPECT_FALSE(job.exit.clean());
    EXPECT_THAT(job.output, HasSubstr(" has taken 3 s (coll_gba_timeout); ranks that have not come: 1\n"));
  }
}

/// Only the first rank knows which rank is missing in the agreement on the device.
TEST_F(Rank, ThatIsFirstAndMissingIsNamed) {
  for (const auto& job : run_at_once({{"late", "0", "0", "0"}, {"late", "0", "0", "1"}})) {
    EXPECT_FALSE(job.exit.clean());
    EXPECT_THAT(job.output, HasSubstr("ranks that have not come: 0, or one that it waits for\n"));
  }
}

/// Calls that failed are not barriers that a rank has missed.
TEST_F(Rank, ThatIsLateCanStillSynchronise) {
  for (const auto& job : run_at_once({{"again", "0"}, {"again", "1"}})) {
    EXPECT_THAT(job, Passes(AllOf(HasSubstr(", fallen back 0,"), HasSubstr("ranks that have not come: 2\n"))));
  }
}

/// mpirun ends the job, and the next job can use the device.
TEST_F(Rank, ThatDiesEndsTheJob) {
  const FakeDevice device({"--group-limit", "32"});  // of one port, which has them all
  for (const char* before : {"0", "3"}) {
    const auto job = run(3, device.path(), {"dies", "1", before});
    EXPECT_FALSE(job.exit.clean());
    // Open MPI 5.0's mpirun breaks the line.
    EXPECT_THAT(job.output, ContainsRegex("exited on[ \n]signal 9"));
    EXPECT_THAT(processes_with(entered()), IsEmpty());
  }
  const auto next = run(3, device.path(), {"many", "32", "1"});
  EXPECT_TRUE(next.exit.clean()) << next.output;
  EXPECT_THAT(next.output, AllOf(Not(HasSubstr("got no group")), HasSubstr(", fallen back 0,")));
}

/// Here mpirun does not end the other ranks.
TEST_F(Rank, ThatDiesIsNamed) {
  const FakeDevice device;
  Options options{"--enable-recovery"};
  options.insert(options.end(), kTimeout.begin(), kTimeout.end());
  const auto job = run(3, device.path(), {"dies", "1", "3"}, options);
  EXPECT_THAT(job.output, HasSubstr("ranks that have not come: 1\n"));
  EXPECT_THAT(processes_with(entered()), IsEmpty());
}

}  // namespace
