// SPDX-License-Identifier: Apache-2.0
// The lines that the design document shows to a user of OpenSHMEM, with fewer PEs, on a machine with the packaged
// service of gba-fake-device; and the default path of both components.
#include <filesystem>
#include <fstream>

#include "tests/integration/openmpi/mpirun.hpp"
#include "tests/support/service.hpp"

namespace {

using openmpi_test::HasLine;
using openmpi_test::Passes;
using test_support::Outcome;
using test_support::sum_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kUse =
    "export OMPI_MCA_scoll_gba_priority=100\n"
    "export OMPI_MCA_scoll_gba_device_path=/dev/gba0\n";
constexpr const char* kDisable = "export OMPI_MCA_scoll_gba_disable=1\n";
constexpr const char* kRun = "oshrun -np 2 ./your_shmem_app\n";

class DefaultPath : public openmpi_test::Mpirun {
 protected:
  void SetUp() override {
    Mpirun::SetUp();
    if (testing::Test::IsSkipped()) {
      return;
    }
    const Outcome possible = test_support::run_with_service({"true"});
    if (possible.exit.code == 77) {
      GTEST_SKIP() << possible.output;
    }
    ASSERT_TRUE(possible.exit.clean()) << possible.output;
    app("your_shmem_app", "openmpi_shmem_ranks");
    app("your_mpi_app", "openmpi_barrier_ranks");
  }

  /// Runs these lines in the folder of the programs. The settings around them do not select the device: they let mpirun
  /// run here, and the components print what they do.
  [[nodiscard]] Outcome lines(const std::string& text, std::vector<std::string> environment = {}) const {
    for (const std::string setting :
         {"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1",
          "OMPI_MCA_plm_rsh_agent=false", "OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo",
          "OMPI_MCA_opal_common_ucx_opal_mem_hooks=0", "OMPI_MCA_scoll_gba_verbose=5", "OMPI_MCA_coll_gba_verbose=5",
          "OMPI_MCA_coll_gba_early_barriers=0"}) {
      environment.push_back(setting);
    }
    environment.push_back("TMPDIR=" + folder_.file(""));
    environment.push_back("OMPI_MCA_btl_vader_backing_directory=" + folder_.file(""));
    environment.push_back(std::string("OMPI_MCA_mca_base_component_path=") + OPENMPI_COMPONENTS + ":SYS_DEFAULT");
    const std::string own = "cd " + folder_.file("") + "\n";
    return test_support::run_with_service({"env", "-u", "GBA_DEVICE", "sh", "-ec", own + text}, environment,
                                          openmpi_test::kLimit);
  }

 private:
  void app(const std::string& name, const std::string& program) {
    std::ofstream(folder_.file(name)) << "#!/bin/sh\nexec " << test_support::test_program(program) << ' '
                                      << folder_.file("entered") << " world 20\n";
    std::filesystem::permissions(folder_.file(name), std::filesystem::perms::owner_all);
  }

  test_support::TempDir folder_;
};

const auto kByTheDevice =
    AllOf(HasLine("0 failures, "), HasSubstr("the device does the barriers"), HasSubstr("by others 0\n"));

TEST_F(DefaultPath, OfTheDocumentsLinesIsTheDevice) {
  const Outcome job = lines(std::string(kUse) + kRun);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, kByTheDevice);
}

TEST_F(DefaultPath, IsNotUsedIfTheDocumentsLineDisablesTheComponent) {
  const Outcome job = lines(std::string(kUse) + kDisable + kRun);
  EXPECT_THAT(job, Passes(HasSubstr("by the device 0,")));
}

TEST_F(DefaultPath, NeedsNoParameter) {
  const Outcome shmem = lines(kRun);
  EXPECT_TRUE(shmem.exit.clean()) << shmem.output;
  EXPECT_THAT(shmem.output, kByTheDevice);
  const Outcome mpi = lines("mpirun -np 2 ./your_mpi_app\n");
  EXPECT_TRUE(mpi.exit.clean()) << mpi.output;
  EXPECT_THAT(mpi.output, HasSubstr("MPI_COMM_WORLD: the device does the barriers"));
}

/// GBA_DEVICE comes before the default, and a parameter that is set, also to the default's value, before GBA_DEVICE.
TEST_F(DefaultPath, GivesWayToTheVariableUnlessItIsSet) {
  const std::string elsewhere = "export GBA_DEVICE=/nonexistent\n";
  const Outcome variable = lines(elsewhere + kRun);
  EXPECT_TRUE(variable.exit.clean()) << variable.output;
  EXPECT_THAT(variable.output, AllOf(HasSubstr("by the device 0,"), Not(HasSubstr("the device does the barriers"))));
  const Outcome parameter = lines(elsewhere + kUse + "export OMPI_MCA_coll_gba_disable=1\n" + kRun);
  EXPECT_TRUE(parameter.exit.clean()) << parameter.output;
  EXPECT_THAT(parameter.output, kByTheDevice);
}

TEST_F(DefaultPath, NeedNotExist) {
  const Outcome job = lines(std::string(kRun), {"GBA_TEST_NOT_STARTED=1"});
  EXPECT_THAT(job, Passes(HasSubstr("by the device 0,")));
}

}  // namespace
