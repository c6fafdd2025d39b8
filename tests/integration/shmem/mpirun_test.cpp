// SPDX-License-Identifier: Apache-2.0
// Jobs that Open MPI's mpirun and MPICH's mpiexec start: by PMIx, and as MPI programs.
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using Environment = std::vector<std::string>;

constexpr Seconds kLimit{300};
constexpr Seconds kMpirunLimit{60};

/// Runs mpirun -np PES COMMAND. Its files are in the test's folder, which is removed.
class Mpirun : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_support::run({"mpirun", "--version"}).exit.clean()) {
      GTEST_SKIP() << "mpirun is not installed (Debian: openmpi-bin)";
    }
  }

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
    const auto job = run(pes, {test_program("shmem_pes"), "api"});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("PE 0 of " + std::to_string(pes) + ": 0 failures"));
  }
  const auto job = run(3, {test_program("openshmem_c_pes"), "c11"}, {"SHMEM_BOOTSTRAP=pmix"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

/// Every routine of OpenSHMEM for every type; openshmem/openshmem_test.cpp does the same with oshrun.
TEST_F(Pmix, StartsTheProgramsOfTheSpecification) {
  const std::vector<int> sizes = repeats(0, 1) != 0 ? std::vector{1, 2, 3, 4, 7} : std::vector{2};
  for (const char* family : {"rma", "atomic", "wait", "collective"}) {
    for (const char* language : {"c", "cxx"}) {
      for (const int pes : sizes) {
        const std::string program = std::string("openshmem_") + language + "_pes";
        const auto job = run(pes, {test_program(program), family}, {"SHMEM_BOOTSTRAP=pmix"});
        EXPECT_TRUE(job.exit.clean()) << program << ' ' << family << " on " << pes << " PEs: " << job.output;
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
  const int pes = repeats(16, 256);
  const auto job = run(pes, {test_program("shmem_pes"), "wrong", "nothing"}, {"SHMEM_SYMMETRIC_SIZE=1m"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Pmix, LetsAProgramReturnFromMainWithoutFinalize) {
  const auto job = run(3, {test_program("shmem_pes"), "wrong", "no-finalize"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Pmix, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(3, {test_program("shmem_pes"), "wrong", "global-exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_F(Pmix, EndsTheJobWhenAPeEndsEarly) {
  const auto job = run(3, {test_program("shmem_pes"), "wrong", "exit-early"});
  // 5 is the status of the PE that ended, 1 that of a PE that reports it, which may reach mpirun first.
  EXPECT_THAT(job.exit.code, AnyOf(5, 1)) << job.output;
}

TEST_F(Pmix, NamesMissingPes) {
  // Not "PROGRAM : -np 2 sleep 1000", on which the mpirun of Open MPI 5.0.7 (PRRTE 3.0.8) crashes.
  constexpr const char* kScript = "[ $OMPI_COMM_WORLD_RANK -lt 2 ] || exec sleep 1000; exec \"$0\" \"$@\"";
  const auto times_out = [&](int seconds) {
    return run(4, {"sh", "-c", kScript, test_program("openshmem_c_pes"), "c11"},
               {"SHMEM_BOOTSTRAP_TIMEOUT=" + std::to_string(seconds)});
  };
  const auto names_them = AllOf(Field(&Outcome::exit, Field(&Exit::code, 1)),
                                Field(&Outcome::output, ContainsRegex("waited [0-9]+ s for PEs 2, 3 to come")));
  const auto job = with_timeouts(times_out, Matches(names_them));
  EXPECT_THAT(job, names_them) << job.output;
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
  std::optional<Exit> exit;
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
  const auto alone = test_support::run({test_program("openshmem_c_pes"), "c11"}, {"SHMEM_BOOTSTRAP=pmix"});
  EXPECT_EQ(alone.exit.code, 1);
  EXPECT_THAT(alone.output, AllOf(HasSubstr("SHMEM_BOOTSTRAP=pmix"), HasSubstr("PMIX_RANK are not set")));
  const auto orphan =
      test_support::run({test_program("openshmem_c_pes"), "c11"}, {"PMIX_NAMESPACE=nobody", "PMIX_RANK=0"});
  EXPECT_EQ(orphan.exit.code, 1);
  EXPECT_THAT(orphan.output, HasSubstr("PMIx_Init: "));
}

/// Programs that call MPI_Init and then libshmem, on each MPI that is installed. Each has a plug-in of its own.
struct Mpi {
  const char* name;
  const char* program;
  const char* missing;
  int pes;
  std::vector<const char*> bootstraps;
  const char* says_killed;
};
void PrintTo(const Mpi& mpi, std::ostream* out) {
  *out << mpi.name;
}

class MpiPrograms : public Mpirun {
 protected:
  void need(const Mpi& mpi) {
    program_ = test_program(mpi.program);
    if (::access(program_.c_str(), X_OK) != 0) {
      GTEST_SKIP() << mpi.missing;
    }
    is_mpich_ = std::string(mpi.name).ends_with("mpich");
    if (std::string(mpi.program) == "mpi_pes_abi") {
      use_abi_of(is_mpich_ ? "mpich" : "openmpi");
    }
    if (!is_mpich_) {
      Mpirun::SetUp();
    } else if (!test_support::run({"mpiexec.mpich", "--version"}).exit.clean()) {
      GTEST_SKIP() << "mpiexec.mpich is not installed (Debian: mpich)";
    }
  }

  [[nodiscard]] Outcome run(int pes, std::vector<std::string> command, Environment environment = {}) const {
    command.insert(command.begin(), program_);
    if (abi_) {
      environment.push_back("LD_LIBRARY_PATH=" + abi_->path());
    }
    if (!is_mpich_) {
      return Mpirun::run(pes, command, environment);
    }
    command.insert(command.begin(), {"mpiexec.mpich", "-n", std::to_string(pes)});
    // Its communication stays in shared memory, whatever adapters the machine has.
    environment.insert(environment.end(), {"SHMEM_GBA=off", "UCX_TLS=self,posix,tcp"});
    return test_support::run(command, environment, kLimit);
  }

 private:
  /// The program loads libmpi_abi.so.1 of this make: in Debian both have one, of which the link of this name is either.
  void use_abi_of(const std::string& make) {
    const std::string library = MPI_ABI_FOLDER "/libmpi_abi_" + make + ".so.1.0.0";
    if (::access(library.c_str(), R_OK) != 0) {
      GTEST_SKIP() << library << " is not installed";
    }
    abi_.emplace();
    ASSERT_EQ(::symlink(library.c_str(), abi_->file("libmpi_abi.so.1").c_str()), 0);
  }

  bool is_mpich_ = false;
  std::string program_;
  std::optional<test_support::TempDir> abi_;
};

constexpr const char* kNoAbi = "built without MPI-5's binary interface (libmpich-dev 5)";
const Mpi kOpenMpi{"openmpi", "mpi_pes_openmpi",       "built without MPI (libopenmpi-dev)",
                   4,         {"mpi", "pmix", "auto"}, "process rank 1"};
const Mpi kMpich{"mpich", "mpi_pes_mpich", "built without MPICH (libmpich-dev)", 3, {"mpi"}, "Killed (signal 9)"};
const Mpi kAbiOfOpenMpi{"abi_openmpi", "mpi_pes_abi", kNoAbi, 4, {"mpi", "pmix", "auto"}, "process rank 1"};
const Mpi kAbiOfMpich{"abi_mpich", "mpi_pes_abi", kNoAbi, 3, {"mpi"}, "Killed (signal 9)"};

class EachMpi : public MpiPrograms, public testing::WithParamInterface<Mpi> {
 protected:
  void SetUp() override { need(GetParam()); }
};

const auto kKinds = std::string(MPI_ABI_FOLDER).empty() ? std::vector{kOpenMpi, kMpich}
                                                        : std::vector{kOpenMpi, kMpich, kAbiOfOpenMpi, kAbiOfMpich};
INSTANTIATE_TEST_SUITE_P(Kinds, EachMpi, ValuesIn(kKinds),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(EachMpi, StartsTheWorld) {
  const int pes = GetParam().pes;
  const auto job = run(pes, {"world"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  const auto hello = [&](int pe) {
    return HasSubstr("PE " + std::to_string(pe) + " of " + std::to_string(pes) + ": hello from " +
                     std::to_string((pe + pes - 1) % pes));
  };
  EXPECT_THAT(job.output, AllOf(hello(0), hello(pes - 1)));
}

TEST_P(EachMpi, StartsAJobOfEachCommunicator) {
  const auto job = run(5, {"split"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("PE 0 of 3: hello from 0"), HasSubstr("PE 1 of 2: hello from 3")));
}

TEST_P(EachMpi, StartsAsTheEnvironmentSays) {
  for (const char* bootstrap : GetParam().bootstraps) {
    const auto job = run(2, {"environment"}, {std::string("SHMEM_BOOTSTRAP=") + bootstrap});
    EXPECT_TRUE(job.exit.clean()) << bootstrap << job.output;
    EXPECT_THAT(job.output, HasSubstr("PE 1 of 2: hello from 0"));
  }
}

TEST_P(EachMpi, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(GetParam().pes - 1, {"exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_P(EachMpi, LeavesNothingBehindWhenAPeIsKilled) {
  const auto job = run(GetParam().pes, {"die", mark()});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AnyOf(HasSubstr("it waited for PE 1"), HasSubstr(GetParam().says_killed)));
  EXPECT_TRUE(none_matching(mark()));
}

TEST_P(EachMpi, GoesOnWithoutAPeThatCannotStart) {
  for (const char* const action : {"refused", "refused-later"}) {
    const auto waits = [&](int seconds) { return run(3, {action, std::to_string(seconds)}); };
    const auto goes_on = [](int process) { return HasSubstr("process " + std::to_string(process) + " goes on"); };
    const auto names_it =
        AllOf(Field(&Outcome::exit, Property(&Exit::clean, true)),
              Field(&Outcome::output, AllOf(HasSubstr("/nowhere/file"), goes_on(0), goes_on(1), goes_on(2),
                                            ContainsRegex("process 0: .* gave -[0-9]+: .*PE 1"))));
    const auto job = with_timeouts(waits, Matches(names_it));
    EXPECT_THAT(job, names_it) << job.output;
  }
}

TEST_P(EachMpi, ReportsErrorsOfMpiOrTheCommunicator) {
  const auto job = run(2, {"null"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("the communicator is MPI_COMM_NULL"), HasSubstr("MPI has ended already")));
}

class OpenMpi : public MpiPrograms {
 protected:
  void SetUp() override { need(kOpenMpi); }
};

TEST_F(OpenMpi, MayStartAfterTheLibrary) {
#ifndef SHMEM_HAS_PMIX
  GTEST_SKIP() << "built without PMIx (libpmix-dev), by which the library starts without MPI";
#endif
  for (const char* action : {"first", "first-and-last"}) {
    for (const char* bootstrap : {"auto", "pmix"}) {
      const auto job = run(3, {action}, {std::string("SHMEM_BOOTSTRAP=") + bootstrap});
      EXPECT_TRUE(job.exit.clean()) << action << ' ' << bootstrap << job.output;
      for (const char* pe : {"PE 0, process ", "PE 1, process ", "PE 2, process "}) {
        EXPECT_THAT(job.output, HasSubstr(pe));
      }
    }
  }
}

TEST_F(OpenMpi, ReportsMissingProcesses) {
  const auto job = run(3, {"late"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("waited 1 s for all processes of the communicator"));
}

TEST_F(OpenMpi, MustStartBeforeItsCommunicatorIsUsed) {
  const auto early = test_support::run({test_program("mpi_pes_openmpi"), "before-mpi"});
  EXPECT_TRUE(early.exit.clean()) << early.output;
  EXPECT_THAT(early.output, HasSubstr("call MPI_Init before"));
}

TEST_F(OpenMpi, NamesThePlugInThatCannotBeLoaded) {
  for (const char* path : {"/nowhere/plugin.so", "libm.so.6"}) {
    const auto job = test_support::run({test_program("openshmem_c_pes"), "c11"},
                                       {"SHMEM_BOOTSTRAP=mpi", std::string("SHMEM_MPI_PLUGIN=") + path});
    EXPECT_EQ(job.exit.code, 1) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("cannot start by MPI"), HasSubstr("SHMEM_MPI_PLUGIN")));
  }
}

class Mpich : public MpiPrograms {
 protected:
  void SetUp() override { need(kMpich); }
};

TEST_F(Mpich, RefusesThePlugInOfAnotherMpi) {
  const std::string plugin = program("../lib/libshmem_bootstrap_openmpi.so");
  if (::access(plugin.c_str(), R_OK) != 0) {
    GTEST_SKIP() << "built without Open MPI (libopenmpi-dev)";
  }
  const auto job = run(1, {"world"}, {"SHMEM_MPI_PLUGIN=" + plugin});
  EXPECT_EQ(job.exit.code, 3) << job.output;
  EXPECT_THAT(job.output, HasSubstr("another MPI than the one that the plug-in was built for"));
}

}  // namespace
