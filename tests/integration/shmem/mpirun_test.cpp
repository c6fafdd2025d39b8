// SPDX-License-Identifier: Apache-2.0
// Jobs that Open MPI's mpirun starts: by PMIx, and as MPI programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::none_matching;
using test_support::Outcome;
using test_support::Process;
using test_support::Seconds;
using test_support::TempDir;
using test_support::test_program;
using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;

using Environment = std::vector<std::string>;

constexpr Seconds kLimit{100};
constexpr Seconds kMpirunLimit{30};

class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_support::run({"mpirun", "--version"}).exit.clean()) {
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
    }
  }

  /// Runs mpirun -np PES COMMAND. Its files are in the test's folder, which is removed.
  [[nodiscard]] std::unique_ptr<Process> start(int pes, const std::vector<std::string>& command,
                                               const Environment& more = {}) const {
    std::vector<std::string> line{"mpirun", "--allow-run-as-root", "--oversubscribe", "-np", std::to_string(pes)};
    line.insert(line.end(), command.begin(), command.end());
    Environment environment{"TMPDIR=" + dir_.path(), "OMPI_MCA_plm_rsh_agent=false",
                            "OMPI_MCA_btl_vader_backing_directory=" + dir_.path(), "SHMEM_GBA=off"};
    environment.insert(environment.end(), more.begin(), more.end());
    return std::make_unique<Process>(line, environment);
  }
  [[nodiscard]] Outcome run(int pes, const std::vector<std::string>& command, const Environment& more = {}) const {
    const auto job = start(pes, command, more);
    const auto exit = job->wait(kLimit);
    return {exit.value_or(test_support::Exit{-1, SIGKILL}), job->output()};
  }
  /// An argument by which the processes of this test are found.
  [[nodiscard]] std::string mark() const { return dir_.path(); }

 private:
  TempDir dir_;
};

class Pmix : public Mpirun {
 protected:
  void SetUp() override {
    Mpirun::SetUp();
#ifndef SHMEM_HAS_PMIX
    GTEST_SKIP() << "built without PMIx (libpmix-dev)";
#endif
  }
};

TEST_F(Pmix, StartsTheProgramsThatOshrunStarts) {
  for (const int pes : {1, 4}) {
    const auto job = run(pes, {test_program("api_pes")});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("PE 0 of " + std::to_string(pes) + ": 0 failures"));
  }
  const auto job = run(3, {test_program("c11_pes")}, {"SHMEM_BOOTSTRAP=pmix"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

/// Every routine of OpenSHMEM for every type; openshmem/openshmem_test.cpp does the same with oshrun.
TEST_F(Pmix, StartsTheProgramsOfTheSpecification) {
  const std::vector<int> sizes = test_support::repeats(0, 1) != 0 ? std::vector{1, 2, 3, 4, 7} : std::vector{2};
  for (const char* family : {"rma", "atomic", "wait", "collective"}) {
    for (const char* language : {"c", "cxx"}) {
      for (const int pes : sizes) {
        const std::string program = std::string("openshmem_") + family + "_" + language + "_pes";
        const auto job = run(pes, {test_program(program)}, {"SHMEM_BOOTSTRAP=pmix"});
        EXPECT_TRUE(job.exit.clean()) << program << " on " << pes << " PEs: " << job.output;
      }
    }
  }
}

#ifdef EXAMPLES
TEST_F(Pmix, StartsTheExamples) {
  for (const char* name : {"hello", "ring", "heat", "histogram", "transpose", "integer_sort", "work_queue"}) {
    const auto job = run(2, {std::string(EXAMPLES "/") + name});
    EXPECT_TRUE(job.exit.clean()) << name << ": " << job.output;
    EXPECT_THAT(job.output, HasSubstr(std::string(name) + ": correct"));
  }
}
#endif

TEST_F(Pmix, StartsManyPes) {
  const int pes = test_support::repeats(16, 256);
  const auto job = run(pes, {test_program("wrong_pes"), "nothing"}, {"SHMEM_SYMMETRIC_SIZE=1m"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Pmix, LetsAProgramReturnFromMainWithoutFinalize) {
  const auto job = run(3, {test_program("wrong_pes"), "no-finalize"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Pmix, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(3, {test_program("wrong_pes"), "global-exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_F(Pmix, EndsTheJobWhenAPeEndsEarly) {
  const auto job = run(3, {test_program("wrong_pes"), "exit-early"});
  // 5 is the status of the PE that ended, 1 that of a PE that reports it, which may reach mpirun first.
  EXPECT_THAT(job.exit.code, AnyOf(5, 1)) << job.output;
}

TEST_F(Pmix, NamesMissingPes) {
  // Not "PROGRAM : -np 2 sleep 1000", on which the mpirun of Open MPI 5.0.7 (PRRTE 3.0.8) crashes.
  constexpr const char* kScript = "[ $OMPI_COMM_WORLD_RANK -lt 2 ] || exec sleep 1000; exec \"$0\"";
  const auto job = run(4, {"sh", "-c", kScript, test_program("c11_pes")}, {"SHMEM_BOOTSTRAP_TIMEOUT=2"});
  EXPECT_EQ(job.exit.code, 1) << job.output;
  EXPECT_THAT(job.output, HasSubstr("waited 2 s for PEs 2, 3 to come"));
}

TEST_F(Pmix, NamesThePeThatIsKilledAndLeavesNothingBehind) {
  const auto job = run(4, {test_program("oshrun_pe"), "die", "2", "9", mark()});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AnyOf(HasSubstr("waits for PE 2: exited"), HasSubstr("process rank 2")));
  EXPECT_TRUE(none_matching(mark()));
}

// If the others wait in PMIx_Fence, as here, Open MPI 4.1's mpirun sometimes crashes or hangs in PMIx_server_finalize
// when it has ended them: then once more.
TEST_F(Pmix, EndsThePesWhenOneEndsTheJob) {
  std::optional<test_support::Exit> exit;
  std::string output = "PMIx_server_finalize";
  for (int attempt = 0; attempt < 6 && output.find("PMIx_server_finalize") != std::string::npos; ++attempt) {
    const auto job = start(4, {test_program("oshrun_pe"), "abort", "1", "6", mark()});
    exit = job->wait(kMpirunLimit);
    ASSERT_TRUE(none_matching(mark(), kLimit, job->pid())) << job->output();
    output = exit ? job->output() : "hangs in PMIx_server_finalize";
  }
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 6) << output;
}

TEST_F(Pmix, EndsThePesWhenTheLauncherIsKilled) {
  const auto job = start(3, {test_program("oshrun_pe"), "stay", mark()});
  for (const char* pe : {"staying 0", "staying 1", "staying 2"}) {
    ASSERT_TRUE(job->wait_for_output(pe, kLimit));
  }
  ::kill(job->pid(), SIGKILL);
  EXPECT_TRUE(none_matching(mark()));
}

TEST_F(Pmix, IsReportedMissingWithoutALauncher) {
  const auto alone = test_support::run({test_program("c11_pes")}, {"SHMEM_BOOTSTRAP=pmix"});
  EXPECT_EQ(alone.exit.code, 1);
  EXPECT_THAT(alone.output, AllOf(HasSubstr("SHMEM_BOOTSTRAP=pmix"), HasSubstr("PMIX_RANK are not set")));
  const auto orphan = test_support::run({test_program("c11_pes")}, {"PMIX_NAMESPACE=nobody", "PMIX_RANK=0"});
  EXPECT_EQ(orphan.exit.code, 1);
  EXPECT_THAT(orphan.output, HasSubstr("PMIx_Init: "));
}

/// Programs that call MPI_Init and then libshmem.
class Mpi : public Mpirun {
 protected:
  void SetUp() override {
    Mpirun::SetUp();
    if (::access(test_program("mpi_pes_openmpi").c_str(), X_OK) != 0) {
      GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
    }
  }
};

TEST_F(Mpi, StartsTheWorld) {
  const auto job = run(4, {test_program("mpi_pes_openmpi"), "world"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("PE 0 of 4: hello from 3"), HasSubstr("PE 3 of 4: hello from 2")));
}

TEST_F(Mpi, StartsAJobOfEachCommunicator) {
  const auto job = run(5, {test_program("mpi_pes_openmpi"), "split"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("PE 0 of 3: hello from 0"), HasSubstr("PE 1 of 2: hello from 3")));
}

TEST_F(Mpi, StartsAsTheEnvironmentSays) {
  for (const char* bootstrap : {"mpi", "pmix", "auto"}) {
    const auto job =
        run(2, {test_program("mpi_pes_openmpi"), "environment"}, {std::string("SHMEM_BOOTSTRAP=") + bootstrap});
    EXPECT_TRUE(job.exit.clean()) << bootstrap << job.output;
    EXPECT_THAT(job.output, HasSubstr("PE 1 of 2: hello from 0"));
  }
}

TEST_F(Mpi, MayStartAfterTheLibrary) {
#ifndef SHMEM_HAS_PMIX
  GTEST_SKIP() << "built without PMIx (libpmix-dev), by which the library starts without MPI";
#endif
  for (const char* action : {"first", "first-and-last"}) {
    for (const char* bootstrap : {"auto", "pmix"}) {
      const auto job = run(3, {test_program("mpi_pes_openmpi"), action}, {std::string("SHMEM_BOOTSTRAP=") + bootstrap});
      EXPECT_TRUE(job.exit.clean()) << action << ' ' << bootstrap << job.output;
      for (const char* pe : {"PE 0, process ", "PE 1, process ", "PE 2, process "}) {
        EXPECT_THAT(job.output, HasSubstr(pe));
      }
    }
  }
}

TEST_F(Mpi, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(3, {test_program("mpi_pes_openmpi"), "exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_F(Mpi, LeavesNothingBehindWhenAPeIsKilled) {
  const auto job = run(4, {test_program("mpi_pes_openmpi"), "die", mark()});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AnyOf(HasSubstr("it waited for PE 1"), HasSubstr("process rank 1")));
  EXPECT_TRUE(none_matching(mark()));
}

TEST_F(Mpi, ReportsMissingProcesses) {
  const auto job = run(3, {test_program("mpi_pes_openmpi"), "late"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("waited 1 s for all processes of the communicator"));
}

TEST_F(Mpi, GoesOnWithoutAPeThatCannotStart) {
  for (const char* const action : {"refused", "refused-later"}) {
    const auto job = run(3, {test_program("mpi_pes_openmpi"), action});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("/nowhere/file"));
    for (const char* const process : {"0", "1", "2"}) {
      EXPECT_THAT(job.output, HasSubstr(std::string("process ") + process + " goes on"));
    }
    EXPECT_THAT(job.output, ContainsRegex("process 0: .* gave -[0-9]+: .*PE 1"));
  }
}

TEST_F(Mpi, ReportsErrorsOfMpiOrTheCommunicator) {
  const auto job = run(2, {test_program("mpi_pes_openmpi"), "null"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("the communicator is MPI_COMM_NULL"), HasSubstr("MPI has ended already")));
  const auto early = test_support::run({test_program("mpi_pes_openmpi"), "before-mpi"});
  EXPECT_TRUE(early.exit.clean()) << early.output;
  EXPECT_THAT(early.output, HasSubstr("call MPI_Init before"));
}

TEST_F(Mpi, NamesThePlugInThatCannotBeLoaded) {
  for (const char* path : {"/nowhere/plugin.so", "libm.so.6"}) {
    const auto job =
        test_support::run({test_program("c11_pes")}, {"SHMEM_BOOTSTRAP=mpi", std::string("SHMEM_MPI_PLUGIN=") + path});
    EXPECT_EQ(job.exit.code, 1) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("cannot start by MPI"), HasSubstr("SHMEM_MPI_PLUGIN")));
  }
}

}  // namespace
