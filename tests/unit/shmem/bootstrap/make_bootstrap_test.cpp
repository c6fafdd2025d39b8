// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <tuple>
#include <utility>
#include <vector>

#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/bootstrap/single.hpp"

namespace shmem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class MakeBootstrap : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }

  static void clear() {
    for (const char* name : {"SHMEM_BOOTSTRAP",
                             kJobFdVariable,
                             kJobRankVariable,
                             kJobSizeVariable,
                             "SHMEM_UID_RANK",
                             "SHMEM_UID_SIZE",
                             "SHMEM_UID_SESSION_ID",
                             "SHMEM_UID_SOCK_IFNAME",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_NTASKS",
                             "SLURM_JOB_ID",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PALS_RANKID",
                             "PALS_APID",
                             "FLUX_TASK_RANK",
                             "FLUX_JOB_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE"}) {
      ::unsetenv(name);
    }
  }
  static void set_job(const std::string& fd, const std::string& rank, const std::string& size) {
    ::setenv(kJobFdVariable, fd.c_str(), 1);
    ::setenv(kJobRankVariable, rank.c_str(), 1);
    ::setenv(kJobSizeVariable, size.c_str(), 1);
  }
  static Result<std::unique_ptr<Bootstrap>> make() {
    const auto options = read_options(process_environment());
    if (!options) {
      return options.error();
    }
    return make_bootstrap(bootstrap_request(*options));
  }
  static std::string error_text() {
    const auto made = make();
    return made ? "no error" : made.error().text;
  }
};

TEST_F(MakeBootstrap, MakesAOnePeJobWithoutALauncher) {
  for (const char* value : {"", "auto", "local"}) {
    ::setenv("SHMEM_BOOTSTRAP", value, 1);
    const auto made = make();
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->rank(), 0);
    EXPECT_EQ((*made)->size(), 1);
    EXPECT_TRUE((*made)->barrier());
  }
}

TEST_F(MakeBootstrap, RefusesAOnePeJobUnderALauncherThatItCannotJoin) {
  using Variables = std::vector<std::pair<const char*, const char*>>;
  const std::vector<std::tuple<Variables, const char*, const char*>> launchers{
      {{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "8"}},
       "srun started this process as one of 8",
       "type srun --mpi=pmix"},
      {{{"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "3"}, {"SLURM_NTASKS", "2"}, {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
       "srun started this process as one of 2 (SLURM_NTASKS=2)",
       "type srun --mpi=pmix"},
      {{{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}}, "Hydra (mpiexec of MPICH", "type oshrun -n 4"},
      {{{"PALS_RANKID", "0"}, {"PALS_APID", "1234"}}, "PALS (mpiexec of HPE Cray)", "type mpiexec --pmi=pmix"},
      {{{"FLUX_TASK_RANK", "0"}, {"FLUX_JOB_SIZE", "3"}}, "flux run", "type flux run -o pmi=pmix"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}}, "mpirun of Open MPI", "SHMEM_BOOTSTRAP=mpi"}};
  for (const auto& [variables, launcher, advice] : launchers) {
    clear();
    for (const auto& [name, value] : variables) {
      ::setenv(name, value, 1);
    }
    EXPECT_THAT(error_text(), AllOf(HasSubstr(launcher), HasSubstr(advice), HasSubstr("SHMEM_BOOTSTRAP=local")));
    ::setenv("SHMEM_BOOTSTRAP", "local", 1);
    EXPECT_EQ(error_text(), "no error") << launcher;
  }
}

TEST_F(MakeBootstrap, MakesAOnePeJobInsideAnAllocationAndInAStepOfOneTask) {
  // First the shell of salloc or sbatch -n 8, then srun -n 1 in it, then the interactive step of newer versions.
  ::setenv("SLURM_JOB_ID", "7", 1);
  ::setenv("SLURM_NTASKS", "8", 1);
  EXPECT_EQ(error_text(), "no error");
  ::setenv("SLURM_STEP_ID", "0", 1);
  ::setenv("SLURM_STEP_NUM_TASKS", "1", 1);
  EXPECT_EQ(error_text(), "no error");
  ::setenv("SLURM_STEP_ID", "4294967290", 1);
  ::unsetenv("SLURM_STEP_NUM_TASKS");
  EXPECT_EQ(error_text(), "no error");
  ::setenv("PMI_RANK", "0", 1);
  ::setenv("PMI_SIZE", "1", 1);
  EXPECT_EQ(error_text(), "no error");
}

TEST_F(MakeBootstrap, RefusesBootstrapsThatDoNotExist) {
  ::setenv("SHMEM_BOOTSTRAP", "telepathy", 1);
  EXPECT_THAT(error_text(), AllOf(HasSubstr("SHMEM_BOOTSTRAP=telepathy"), HasSubstr("auto, local, uid, pmix or mpi")));
}

TEST_F(MakeBootstrap, NamesWhatIsMissingOrWrongForAJobOverTcp) {
  ::setenv("SHMEM_BOOTSTRAP", "uid", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_RANK is not set"));
  ::setenv("SHMEM_UID_RANK", "2", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SIZE is not set"));
  ::setenv("SHMEM_UID_SIZE", "2", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SESSION_ID is not set"));
  ::setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:0", 1);
  EXPECT_THAT(error_text(), HasSubstr("there is no PE 2 in a job of 2"));
  ::setenv("SHMEM_UID_RANK", "0", 1);
  EXPECT_THAT(error_text(), AllOf(HasSubstr("SHMEM_UID_SESSION_ID=127.0.0.1:0"), HasSubstr("cannot know which port")));
  ::setenv("SHMEM_UID_SESSION_ID", "127.0.0.1:http", 1);
  EXPECT_THAT(error_text(), HasSubstr("SHMEM_UID_SESSION_ID=127.0.0.1:http: \"http\" is not a port"));
  ::setenv("SHMEM_BOOTSTRAP", "auto", 1);  // found by SHMEM_UID_RANK
  EXPECT_THAT(error_text(), HasSubstr("\"http\" is not a port"));
}

TEST_F(MakeBootstrap, RefusesARankThatContradictsTheLauncher) {
  const auto text_if_expected = [](int rank, int size) {
    BootstrapRequest request;
    request.expected = {rank, size};
    const auto made = make_bootstrap(std::move(request));
    return made ? "no error" : made.error().text;
  };
  EXPECT_EQ(text_if_expected(0, 1), "no error");
  EXPECT_THAT(text_if_expected(1, 2), AllOf(HasSubstr("this is PE 1 of 2"), HasSubstr("its launcher says PE 0 of 1")));
}

TEST_F(MakeBootstrap, JoinsTheJobThatTheEnvironmentNames) {
  const auto job = JobMemory::create(4).value();
  set_job(std::to_string(job.fd()), "2", "4");
  const auto made = make();
  ASSERT_TRUE(made) << made.error().text;
  EXPECT_EQ((*made)->rank(), 2);
  EXPECT_EQ((*made)->size(), 4);
  EXPECT_EQ(job.slot(2).state.load(), PeState::kJoined);
}

TEST_F(MakeBootstrap, NamesAnInvalidEnvironment) {
  const auto job = JobMemory::create(4).value();
  const std::string fd = std::to_string(job.fd());
  const std::string cases[][3] = {{"x", "0", "4"}, {fd, "4", "4"},   {fd, "-1", "4"},    {fd, "0", "0"},
                                  {fd, "1x", "4"}, {"-1", "0", "4"}, {fd, "0", "99999"}, {fd, "", "4"}};
  for (const auto& [number, rank, size] : cases) {
    set_job(number, rank, size);
    EXPECT_THAT(error_text(), HasSubstr(fmt::format(
                                  "does not describe a job of oshrun: OSHRUN_JOB_FD={} OSHRUN_RANK={} OSHRUN_SIZE={}",
                                  number, rank, size)));
  }
  ::unsetenv(kJobRankVariable);
  EXPECT_THAT(error_text(), HasSubstr("OSHRUN_RANK is not set"));
}

TEST_F(MakeBootstrap, ReportsAMissingDescriptorOfTheJob) {
  set_job("9999", "0", "4");
  EXPECT_THAT(error_text(), AllOf(HasSubstr("cannot join the job"), HasSubstr("OSHRUN_JOB_FD=9999"),
                                  HasSubstr("Bad file descriptor")));
}

TEST(SingleBootstrap, GathersItsOwnBytes) {
  SingleBootstrap bootstrap;
  const std::vector<std::byte> mine = {std::byte{1}, std::byte{2}};
  EXPECT_EQ(bootstrap.allgather(mine).value(), mine);
}

TEST(SingleBootstrap, RemembersTheFirstReasonToAbort) {
  SingleBootstrap bootstrap;
  EXPECT_FALSE(bootstrap.aborted());
  EXPECT_EQ(bootstrap.abort(1, "first"), 1);
  EXPECT_EQ(bootstrap.abort(2, "second"), 1);
  EXPECT_EQ(bootstrap.aborted(), "first");
}

TEST(PeList, CombinesConsecutivePes) {
  EXPECT_EQ(pe_list({3}), "PE 3");
  EXPECT_EQ(pe_list({0, 1}), "PEs 0, 1");
  EXPECT_EQ(pe_list({0, 2, 3, 4, 7, 9, 10}), "PEs 0, 2-4, 7, 9, 10");
}

}  // namespace
}  // namespace shmem
