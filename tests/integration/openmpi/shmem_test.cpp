// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM programs of Open MPI's whose barriers the device does, by the component scoll/gba.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::Mpirun;
using openmpi_test::Options;
using test_support::FakeDevice;
using test_support::Outcome;
using test_support::repeats;
using test_support::sum_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Shmem : public Mpirun {
 protected:
  /// PEs of shmem_ranks; `device` is $GBA_DEVICE for both components.
  [[nodiscard]] Outcome run(int pes, const std::string& device, const std::vector<std::string>& command,
                            const Options& options = {}) const {
    // Debian's UCX crashes at the end of OpenSHMEM programs with its memory hooks.
    Options all{"-x",    "GBA_DEVICE=" + device, "--mca", "opal_common_ucx_opal_mem_hooks", "0",
                "--mca", "scoll_gba_verbose",    "5"};
    all.insert(all.end(), options.begin(), options.end());
    return run_program("openmpi_shmem_ranks", pes, command, all);
  }
};

const Options kWithoutColl{"--mca", "coll_gba_disable", "1"};

std::string all_pes(int pes) {
  return "scoll:gba: the " + std::to_string(pes) + " PEs from PE 0 on: ";
}

/// The component says that it was selected, and the device that it has counted the barriers.
TEST_F(Shmem, BarriersAreDoneByTheDevice) {
  for (const int pes : {2, 4}) {
    const FakeDevice device;
    const int barriers = repeats(50, 1000);
    const auto job = run(pes, device.path(), {"world", std::to_string(barriers)}, kWithoutColl);
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr(all_pes(pes) + "the device does the barriers"),
                                  HasSubstr("by others 0\n")));
    EXPECT_GE(sum_of(job.output, "by the device"), 2 * barriers);
    EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
  }
}

TEST_F(Shmem, BarriersOfActiveSetsAreDoneByTheDevice) {
  for (const int pes : {2, 4, 5}) {
    const FakeDevice device;
    const int barriers = repeats(20, 500);
    const auto job = run(pes, device.path(), {"sets", std::to_string(barriers)}, kWithoutColl);
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr("by others 0\n"))) << pes;
    EXPECT_GE(releases_of(device), sum_of(job.output, "by the device"));
  }
}

TEST_F(Shmem, BarriersMayMixWithThoseOfMpi) {
  const FakeDevice device;
  const int barriers = repeats(20, 500);
  const auto job = run(4, device.path(), {"mixed", std::to_string(barriers)});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr("by others 0\n"), HasSubstr("fallen back 0,")));
  EXPECT_GE(sum_of(job.output, "by the device"), 2 * barriers);
  EXPECT_GE(sum_of(job.output, "offloaded"), 2 * barriers);
  EXPECT_GE(releases_of(device), 4 * static_cast<unsigned long long>(barriers));
}

/// A device of so many ports: MPI and OpenSHMEM share the connection of a process.
TEST_F(Shmem, SharesTheConnectionOfMpi) {
  const FakeDevice device({"--ports", "2"});
  const auto job = run(2, device.path(), {"mixed", "5"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr(all_pes(2) + "the device does the barriers"),
                                HasSubstr("MPI_COMM_WORLD: the device does the barriers"), HasSubstr("by others 0\n"),
                                HasSubstr("fallen back 0,")));
}

/// Both the group of all PEs and an active set, however far the PEs are.
TEST_F(Shmem, BarriersAreDoneWithoutTheDeviceThatIsKilled) {
  for (int time = 0; time < repeats(4, 50); ++time) {
    FakeDevice device;
    const auto job = run(time % 2 == 0 ? 2 : 4, device.path(),
                         {"killed", "40", std::to_string(10 + time % 25), std::to_string(device.process().pid())});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output,
                AllOf(HasSubstr("\n0 failures, "), HasSubstr("scoll:gba: "), HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "by the device"), 5);
    EXPECT_GE(sum_of(job.output, "by others"), 1);
  }
}

TEST_F(Shmem, BarriersAreDoneWithoutADevice) {
  for (const char* path : {"", "/nonexistent"}) {
    for (const char* name : {"world", "sets"}) {
      const auto job = run(2, path, {name, "10"});
      EXPECT_TRUE(job.exit.clean()) << job.output;
      EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr("by the device 0,"),
                                    HasSubstr(all_pes(2) + "the previous module does the barriers")));
    }
  }
}

/// One decision by all: a PE that does not want the device tells the others.
TEST_F(Shmem, BarriersAreDoneWhereSomePesDoWithoutTheDevice) {
  const FakeDevice device;
  const auto job = run(1, device.path(),
                       {"world", "10", ":", "-np", "1", "env", "OMPI_MCA_scoll_gba_disable=1",
                        test_support::test_program("openmpi_shmem_ranks"), entered(), "world", "10"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("\n0 failures, "), HasSubstr("scoll_gba_disable is set"), HasSubstr("by the device 0,")));
}

TEST_F(Shmem, SmallGroupsAreLeftToOthers) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"sets", "5"}, {"--mca", "scoll_gba_min_group_size", "4"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("\n0 failures, "), HasSubstr(all_pes(4) + "the device does the barriers"),
                    HasSubstr("fewer members than scoll_gba_min_group_size"), Not(HasSubstr("by others 0\n"))));
}

/// Two nodes, which are host names of this machine: only the last two PEs of the active sets are on one.
TEST_F(Shmem, GroupsOnSeveralNodesAreLeftToOthers) {
  if (!test_support::run({"unshare", "--uts", "true"}).exit.clean()) {
    GTEST_SKIP() << "host names of their own need root (unshare --uts)";
  }
  const FakeDevice device;
  const auto job =
      run(4, device.path(), {"sets", "5"}, {"--mca", "plm_rsh_agent", OPENMPI_NODE_AGENT, "--host", "nodea:2,nodeb:2"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("\n0 failures, "), HasSubstr("scoll:gba: the 2 PEs from PE 2 on: the device does"),
                    HasSubstr("3 PEs from PE 1 on: the previous module does the barriers: rank 1 cannot use a device"),
                    HasSubstr("members are on other nodes")));
}

}  // namespace
