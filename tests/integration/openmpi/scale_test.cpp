// SPDX-License-Identifier: Apache-2.0
// Many ranks on one machine: in a soak 128 of MPI and 64 PEs of OpenSHMEM, otherwise 16.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::HasLine;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::repeats;
using testing::AllOf;
using testing::HasSubstr;

/// In MPI_Init a rank looks every 0.1 ms whether the others have started. With this slack of its timers it sleeps for
/// up to 0.1 s instead, and leaves the processors to them.
const openmpi_test::Options kPatient{"sh", "-c", R"(echo 100000000 >/proc/self/timerslack_ns; exec "$@")", "sh"};

class Scale : public openmpi_test::Mpirun {};

TEST_F(Scale, ManyRanksOfMpiUseTheDevice) {
  const FakeDevice device;
  const int ranks = repeats(16, 128);
  const auto job = run(ranks, device.path(), {"world", "5"}, kPatient);
  EXPECT_THAT(job, Passes(AllOf(HasLine("0 failures, offloaded 5, fallen back 0,"),
                                HasSubstr("as group 0 of " + std::to_string(ranks) + " members on 1 node\n"))));
  EXPECT_EQ(releases_of(device), 5);
}

#ifdef OPENMPI_WITH_SCOLL
TEST_F(Scale, ManyPesOfOpenShmemUseTheDevice) {
  const FakeDevice device;
  const int pes = repeats(16, 64);
  openmpi_test::Options options{"-x",
                                "GBA_DEVICE=" + device.path(),
                                "--mca",
                                "opal_common_ucx_opal_mem_hooks",
                                "0",
                                "--mca",
                                "scoll_gba_verbose",
                                "5",
                                "--mca",
                                "coll_gba_disable",
                                "1"};
  options.insert(options.end(), kPatient.begin(), kPatient.end());
  const auto job = run_program("openmpi_shmem_ranks", pes, {"world", "5"}, options);
  EXPECT_THAT(job, Passes(AllOf(HasSubstr("by others 0\n"),
                                HasSubstr("as group 0 of " + std::to_string(pes) + " members on 1 node\n"))));
  EXPECT_GE(releases_of(device), test_support::sum_of(job.output, "by the device"));
}
#endif

}  // namespace
