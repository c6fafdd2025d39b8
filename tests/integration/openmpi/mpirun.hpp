// SPDX-License-Identifier: Apache-2.0
// Jobs of Open MPI's mpirun with the components of this build.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace openmpi_test {

using test_support::FakeDevice;
using test_support::Outcome;
using test_support::Process;
using test_support::Seconds;

/// A line of the text begins with `start`. Which of mpirun's two outputs comes first differs between runs.
MATCHER_P(HasLine, start, "has a line that begins with \"" + std::string(start) + "\"") {
  return ("\n" + std::string(arg)).find("\n" + std::string(start)) != std::string::npos;
}

/// The job has ended well, and no rank has seen a failure.
MATCHER_P(Passes, output, "passes, and its output " + testing::DescribeMatcher<std::string>(output)) {
  *result_listener << arg.output << '\n';
  return arg.exit.clean() && testing::ExplainMatchResult(HasLine("0 failures, "), arg.output, result_listener) &&
         testing::ExplainMatchResult(output, arg.output, result_listener);
}

/// The job has failed.
MATCHER_P(Fails, output, "fails, and its output " + testing::DescribeMatcher<std::string>(output)) {
  *result_listener << arg.output << '\n';
  return !arg.exit.clean() && testing::ExplainMatchResult(output, arg.output, result_listener);
}

/// Generous: a test must end, not be fast.
constexpr Seconds kLimit{1200};

/// MCA parameters and other options of mpirun, and a command that starts the program, if there is one.
using Options = std::vector<std::string>;

/// Two nodes, which are host names on this machine, with two ranks each. `agent`: node_agent.sh.
Options two_nodes(const std::string& agent);

/// The last rank is started by `command`, e.g. env NAME=VALUE. For the end of Options. The mpirun of Open MPI 5.0.7
/// (PRRTE 3.0.8) crashes if ranks have command lines of their own, with ":" between them.
Options last_rank_by(const std::vector<std::string>& command);

class Mpirun : public testing::Test {
 protected:
  Mpirun();
  ~Mpirun() override;

  void SetUp() override;

  /// Runs ranks of barrier_ranks. `device` is the value of coll_gba_device_path, which "" leaves unset.
  [[nodiscard]] Outcome run(int ranks, const std::string& device, const std::vector<std::string>& command,
                            const Options& options = {}) const;

  [[nodiscard]] Outcome run_program(const std::string& program, int ranks, const std::vector<std::string>& command,
                                    const Options& options) const;

  /// `entered`: the file that the ranks share.
  [[nodiscard]] std::unique_ptr<Process> start_program(const std::string& program, int ranks,
                                                       const std::string& entered,
                                                       const std::vector<std::string>& command,
                                                       const Options& options) const;

  static Outcome end(Process& job);

  /// The file that the ranks share.
  [[nodiscard]] std::string entered() const { return dir_.file("entered"); }

  /// The barriers that the device has counted, as reported by gba info.
  static unsigned long long releases_of(const FakeDevice& device);

  [[nodiscard]] virtual std::unique_ptr<Process> start(const std::vector<std::string>& line,
                                                       const std::vector<std::string>& environment) const;

 private:
  test_support::TempDir dir_;
  mutable int jobs_ = 0;
};

}  // namespace openmpi_test
