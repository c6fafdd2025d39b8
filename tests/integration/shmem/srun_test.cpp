// SPDX-License-Identifier: Apache-2.0
// Jobs that Slurm's srun starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/integration/shmem/slurm.hpp"
#include "tests/support/job.hpp"
#include "tests/support/openmpi_network.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{100};

class Srun : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Slurm::missing()) {
      slurm_ = std::make_unique<Slurm>();
    }
  }
  static void TearDownTestSuite() { slurm_.reset(); }
  void SetUp() override {
    if (const auto missing = Slurm::missing()) {
      GTEST_SKIP() << *missing;
    }
    ASSERT_TRUE(slurm_->is_ready()) << slurm_->log();
  }

  static Outcome run(int tasks, const std::vector<std::string>& command,
                     const std::vector<std::string>& environment = {}) {
    const auto job = slurm_->srun(tasks, command, environment);
    const auto exit = job->wait(kLimit);
    return {exit.value_or(Exit{-1, SIGKILL}), job->output()};
  }

  static std::unique_ptr<Slurm> slurm_;
};
std::unique_ptr<Slurm> Srun::slurm_;

TEST_F(Srun, StartsTheProgramsThatOshrunStarts) {
  for (const int pes : {1, 4, 16}) {
    const auto job = run(pes, {test_program("shmem_pes"), "api"});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("PE 0 of " + std::to_string(pes) + ": 0 failures"));
  }
  const auto job = run(4, {test_program("openshmem_c_pes"), "c11"}, {"SHMEM_BOOTSTRAP=pmix"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Srun, LetsAProgramReturnFromMainWithoutFinalize) {
  const auto job = run(3, {test_program("shmem_pes"), "wrong", "no-finalize"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

TEST_F(Srun, EndsTheJobWithTheStatusOfGlobalExit) {
  const auto job = run(3, {test_program("shmem_pes"), "wrong", "global-exit"});
  EXPECT_EQ(job.exit.code, 9) << job.output;
}

TEST_F(Srun, NamesThePeThatIsKilled) {
  const auto job = run(4, {test_program("oshrun_pe"), "die", "2", "9", "srun-test-die"});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("task 2: Killed"));
  EXPECT_TRUE(none_matching("srun-test-die"));
}

TEST_F(Srun, NamesMissingPes) {
  const auto job = run(3, {"sh", "-c", "[ $PMIX_RANK = 1 ] && sleep 5 || " + test_program("openshmem_c_pes") + " c11"},
                       {"SHMEM_BOOTSTRAP_TIMEOUT=1"});
  EXPECT_FALSE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("waited 1 s for PE 1 to come"));
}

TEST_F(Srun, LeavesNothingBehindWhenItIsKilled) {
  const auto job = slurm_->srun(2, {test_program("oshrun_pe"), "stay", "srun-test-stay"});
  for (const char* pe : {"staying 0", "staying 1"}) {
    ASSERT_TRUE(job->wait_for_output(pe, kLimit)) << job->output();
  }
  job->signal(SIGKILL);
  EXPECT_TRUE(none_matching("srun-test-stay"));
}

TEST_F(Srun, StartsMpiProgramsByMpi) {
  if (::access(test_program("mpi_pes_openmpi").c_str(), X_OK) != 0) {
    GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
  }
  for (const char* how : {"world", "split"}) {
    const auto job = run(4, {test_program("mpi_pes_openmpi"), how});
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

/// With packaging/slurm/taskprolog.sh, on a node whose first port cannot be opened: only the second one is the job's.
TEST_F(Srun, GivesAJobThePortThatItMayOpen) {
  const FakeDevice device;
  const TempDir folder;
  std::filesystem::create_symlink("nowhere", folder.file("gba0"));
  std::filesystem::create_symlink(device.socket(), folder.file("gba1"));
  const std::string prolog = folder.file("prolog.sh");
  std::ofstream(prolog) << "#!/bin/sh\nexec " GBA_SOURCE_DIR "/packaging/slurm/taskprolog.sh " << folder.path() << '\n';
  ::chmod(prolog.c_str(), 0700);
  slurm_.reset();  // two at a time would share the name of the node
  const Slurm slurm(nullptr, prolog);
  ASSERT_TRUE(slurm.is_ready()) << slurm.log();
  const auto job = slurm.srun(2, {test_program("shmem_pes"), "api"}, {"SHMEM_GBA=require", "GBA_DEVICE="});
  EXPECT_TRUE(job->wait(kLimit).value_or(Exit{}).clean()) << job->output();
  EXPECT_THAT(job->output(), HasSubstr("PE 0 of 2: 0 failures"));
  const auto chosen = slurm.srun(1, {"sh", "-c", "echo port $GBA_DEVICE"}, {"GBA_DEVICE=/dev/gba7"});
  EXPECT_TRUE(chosen->wait(kLimit).value_or(Exit{}).clean()) << chosen->output();
  EXPECT_EQ(chosen->output(), "port /dev/gba7\n") << "the user has chosen";
  slurm_ = std::make_unique<Slurm>();
}

TEST_F(Srun, StartsTasksOnHosts) {
  if (const auto missing = Hosts::missing()) {
    GTEST_SKIP() << *missing;
  }
  const Hosts hosts(2);
  const Slurm slurm(&hosts);
  ASSERT_TRUE(slurm.is_ready()) << slurm.log();
  const auto job = slurm.srun(4, {"sh", "-c", "echo task $PMIX_RANK on $(hostname) $SHMEM_HOST_ID"});
  ASSERT_TRUE(job->wait(kLimit).value_or(Exit{}).clean()) << job->output();
  for (int task = 0; task < 4; ++task) {
    const int host = task / 2;
    EXPECT_THAT(job->output(),
                HasSubstr("task " + std::to_string(task) + " on " + Hosts::name(host) + " " + hosts.id(host) + "\n"));
  }
  // Also programs of Open MPI, over the network by UCX.
  const auto program = test_program("openmpi_barrier_ranks");
  if (::access(program.c_str(), X_OK) != 0) {
    GTEST_SKIP() << "built without MPI (libopenmpi-dev)";
  }
  const TempDir dir;
  const auto before = hosts.traffic(1).sent;
  const auto ranks = slurm.srun(4, {program, dir.file("entered"), "world", "300"}, openmpi_over_ucx());
  EXPECT_TRUE(ranks->wait(kLimit).value_or(Exit{}).clean()) << ranks->output() << slurm.log();
  EXPECT_THAT(ranks->output(), HasSubstr("0 failures, "));
  EXPECT_GT(hosts.traffic(1).sent - before, 300U);
}

}  // namespace
