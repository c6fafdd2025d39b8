// SPDX-License-Identifier: Apache-2.0
// Programs of MPICH, which has a plug-in of its own; mpirun_test.cpp has those of Open MPI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace {

using test_support::none_matching;
using test_support::Outcome;
using test_support::Seconds;
using test_support::TempDir;
using test_support::test_program;
using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;

class Mpich : public testing::Test {
 protected:
  void SetUp() override {
    if (::access(test_program("mpi_pes_mpich").c_str(), X_OK) != 0) {
      GTEST_SKIP() << "built without MPICH (libmpich-dev)";
    }
    if (!test_support::run({"mpiexec.mpich", "--version"}).exit.clean()) {
      GTEST_SKIP() << "mpiexec.mpich is not installed (Debian: mpich)";
    }
  }

  /// Its communication stays in shared memory, whatever adapters the machine has.
  [[nodiscard]] static Outcome run(int pes, const std::vector<std::string>& arguments,
                                   std::vector<std::string> environment = {}) {
    std::vector<std::string> line{"mpiexec.mpich", "-n", std::to_string(pes), test_program("mpi_pes_mpich")};
    line.insert(line.end(), arguments.begin(), arguments.end());
    environment.insert(environment.end(), {"SHMEM_GBA=off", "UCX_TLS=self,posix,tcp"});
    return test_support::run(line, environment, Seconds{100});
  }
};

TEST_F(Mpich, StartsTheWorld) {
  const auto job = run(3, {"world"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("PE 0 of 3: hello from 2"), HasSubstr("PE 2 of 3: hello from 1")));
}

TEST_F(Mpich, StartsAJobOfEachCommunicator) {
  const auto job = run(5, {"split"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("PE 0 of 3: hello from 0"), HasSubstr("PE 1 of 2: hello from 3")));
}

TEST_F(Mpich, StartsAsTheEnvironmentSays) {
  const auto job = run(2, {"environment"}, {"SHMEM_BOOTSTRAP=mpi"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("PE 1 of 2: hello from 0"));
}

TEST_F(Mpich, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(2, {"exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_F(Mpich, LeavesNothingBehindWhenAPeIsKilled) {
  const TempDir mark;
  const auto job = run(3, {"die", mark.path()});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AnyOf(HasSubstr("it waited for PE 1"), HasSubstr("Killed (signal 9)")));
  EXPECT_TRUE(none_matching(mark.path()));
}

TEST_F(Mpich, GoesOnWithoutAPeThatCannotStart) {
  for (const char* const action : {"refused", "refused-later"}) {
    const auto job = run(3, {action});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("/nowhere/file"));
    for (const char* const process : {"0", "1", "2"}) {
      EXPECT_THAT(job.output, HasSubstr(std::string("process ") + process + " goes on"));
    }
    EXPECT_THAT(job.output, ContainsRegex("process 0: .* gave -[0-9]+: .*PE 1"));
  }
}

TEST_F(Mpich, ReportsErrorsOfTheCommunicator) {
  const auto job = run(2, {"null"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("the communicator is MPI_COMM_NULL"), HasSubstr("MPI has ended already")));
}

TEST_F(Mpich, RefusesThePlugInOfAnotherMpi) {
  const std::string plugin = test_support::program("../lib/libshmem_bootstrap_openmpi.so");
  if (::access(plugin.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "built without Open MPI (libopenmpi-dev)";
  }
  const auto job = run(1, {"world"}, {"SHMEM_MPI_PLUGIN=" + plugin});
  EXPECT_EQ(job.exit.code, 3) << job.output;
  EXPECT_THAT(job.output, HasSubstr("another MPI than the one that the plug-in was built for"));
}

}  // namespace
