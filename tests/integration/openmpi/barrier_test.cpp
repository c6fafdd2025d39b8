// SPDX-License-Identifier: Apache-2.0
// MPI programs whose barriers the device does, through the component coll/gba.
#include <filesystem>
#include <set>
#include <utility>

#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::HasLine;
using openmpi_test::Mpirun;
using openmpi_test::Options;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::repeats;
using test_support::sum_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Barrier = Mpirun;
using Group = Mpirun;

constexpr const char* kSelected = "MPI_COMM_WORLD: the device does the barriers";

/// The component reports that it was selected, and the device has counted each barrier.
TEST_F(Barrier, IsDoneByTheDevice) {
  for (const int ranks : {2, 4, 8}) {
    const FakeDevice device;
    const int barriers = repeats(50, 1000);
    const auto job = run(ranks, device.path(), {"world", std::to_string(barriers)});
    EXPECT_THAT(job, Passes(HasLine("0 failures, offloaded " + std::to_string(barriers) + ", fallen back 0,")));
    EXPECT_THAT(job.output, HasSubstr(std::string(kSelected) + ", as group 0 of " + std::to_string(ranks)));
    EXPECT_EQ(releases_of(device), static_cast<unsigned long long>(barriers));
  }
}

TEST_F(Barrier, MayBeNonBlocking) {
  const FakeDevice device;
  const auto job = run(3, device.path(), {"mixed", std::to_string(repeats(20, 500))});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr(kSelected), HasSubstr(", fallen back 0,")));
  EXPECT_EQ(releases_of(device), sum_of(job.output, "offloaded"));
}

/// The device is a process, which may need the processor of a rank that waits in Open MPI's progress engine.
TEST_F(Barrier, GivesTheProcessorToADeviceThatIsAProcess) {
  const FakeDevice device;
  constexpr unsigned long long kTests = 100;
  const Options spins{"--mca", "mpi_yield_when_idle", "0"};
  const auto job = run(2, device.path(), {"tested", std::to_string(kTests)}, spins);
  EXPECT_THAT(job, Passes(HasSubstr(kSelected)));
  EXPECT_GE(sum_of(job.output, "given up"), kTests / 2) << job.output;
  // Without a device it is left to Open MPI.
  const auto without = run(2, "", {"tested", std::to_string(kTests)}, spins);
  EXPECT_THAT(without, Passes(testing::_));
  EXPECT_LT(sum_of(without.output, "given up"), kTests / 2) << without.output;
}

TEST_F(Barrier, IsDoneOnEveryKindOfIntracommunicator) {
  for (const int ranks : {5, 8}) {
    const FakeDevice device;
    const auto job = run(ranks, device.path(), {"kinds", std::to_string(repeats(2, 50))});
    EXPECT_THAT(job, Passes(HasSubstr(", fallen back 0,"))) << ranks;
  }
}

TEST_F(Barrier, IsLeftToOtherModulesForIntercommunicatorsAndSingleMembers) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"inter", "3"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("it is an intercommunicator"));
}

/// The groups of the device that communicators of all processes of a world have taken.
std::set<int> groups_of_worlds(const std::string& output) {
  const std::string taken = std::string(kSelected) + ", as group ";
  std::set<int> groups;
  for (auto at = output.find(taken); at != std::string::npos; at = output.find(taken, at + 1)) {
    groups.insert(std::stoi(output.substr(at + taken.size())));
  }
  return groups;
}

/// Spawned processes have their own MPI_COMM_WORLD and group. Communicators that they share with their parents do not
/// use the device.
TEST_F(Barrier, UsesAnotherGroupForSpawnedProcesses) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"spawn", test_support::test_program("openmpi_barrier_ranks")});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  // The worlds take their groups in either order.
  EXPECT_THAT(groups_of_worlds(job.output), testing::SizeIs(2)) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("its members are of several jobs"), HasSubstr("it is an intercommunicator")));
  EXPECT_EQ(sum_of(job.output, "offloaded"), 10) << job.output;
  EXPECT_EQ(releases_of(device), 10);
}

/// Processes that get no port share the ports of others on their node: one process rings for all of them.
TEST_F(Group, MayHaveMoreRanksThanTheDeviceHasPorts) {
  for (const int ports : {1, 3}) {
    const FakeDevice device({"--ports", std::to_string(ports)});
    const auto job = run(5, device.path(), {"mixed", std::to_string(repeats(20, 500))});
    EXPECT_THAT(job, Passes(AllOf(HasSubstr(kSelected), HasSubstr(", fallen back 0,"))));
    EXPECT_EQ(releases_of(device), sum_of(job.output, "offloaded"));
  }
}

/// Some communicators have a member with a port, others have none.
TEST_F(Group, MembersMayShareAPort) {
  const FakeDevice device({"--ports", "1"});
  const auto job = run(5, device.path(), {"kinds", std::to_string(repeats(2, 50))});
  EXPECT_THAT(job, Passes(AllOf(HasSubstr(kSelected), HasSubstr("cannot use a device (Device or resource busy)"))));
}

/// The device has 32 groups; MPI_COMM_WORLD has the first one.
TEST_F(Group, BeyondTheLastFallsThroughToThePreviousModule) {
  const FakeDevice device({"--group-limit", "32"});
  const auto job = run(2, device.path(), {"many", "33", "2"});
  EXPECT_THAT(job, Passes(HasSubstr("as group 31 of 2")));
  const std::string reason = "the previous module does the barriers: rank 0 got no group of the device";
  const auto found = job.output.find(reason);
  EXPECT_NE(found, std::string::npos) << job.output;
  EXPECT_EQ(job.output.find(reason, found + 1), std::string::npos) << "more than one communicator fell through";
}

TEST_F(Group, MayBeAnyOfTheSwitchProfile) {
  const FakeDevice device({"--profile", "switch"});
  const auto job = run(2, device.path(), {"many", "40", "1"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              AllOf(Not(HasSubstr("got no group")), HasSubstr("as group 39 of 2"), HasSubstr(", fallen back 0,")));
  EXPECT_EQ(releases_of(device), sum_of(job.output, "offloaded"));
  const int ranks = repeats(3, 129);  // in a soak a rank more than its 128 ports, so that two share one
  const auto large = run(ranks, device.path(), {"world", "3"});
  EXPECT_THAT(large, Passes(AllOf(HasLine("0 failures, offloaded 3, fallen back 0,"),
                                  HasSubstr("as group 0 of " + std::to_string(ranks)))));
}

/// Uses more communicators, one after the other, than the device has groups.
TEST_F(Group, IsFreedWithItsCommunicator) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"churn", std::to_string(repeats(70, 10'000))});
  EXPECT_THAT(job, Passes(testing::_));
  EXPECT_GE(sum_of(job.output, "offloaded"), 60);
}

/// How often `text` is in the output.
int count_of(const std::string& output, const std::string& text) {
  int count = 0;
  for (auto at = output.find(text); at != std::string::npos; at = output.find(text, at + 1)) {
    ++count;
  }
  return count;
}

/// Communicators that make no barrier, or only the first ones, take no group: no process even opens the device.
TEST_F(Group, IsNotTakenByCommunicatorsWithoutBarriers) {
  const std::string communicators = std::to_string(repeats(100, 10'000));
  for (const auto& [barriers, early] : {std::pair{"0", "0"}, std::pair{"2", "2"}}) {
    FakeDevice device({"--log-level", "info"});
    const auto job =
        run(3, device.path(), {"loop", communicators, barriers}, {"--mca", "coll_gba_early_barriers", early});
    EXPECT_THAT(job, Passes(HasLine("0 failures, offloaded 0, fallen back 0,")));
    EXPECT_EQ(count_of(job.output, "coll:gba: communicator"), 0) << job.output;
    EXPECT_THAT(device.process().output(), Not(HasSubstr("opened by"))) << barriers << " barriers each";
  }
}

/// The first barriers are done by the module that Open MPI would have chosen. The members agree on how many.
TEST_F(Barrier, IsDoneByTheDeviceAfterTheFirstOnes) {
  const FakeDevice device;
  const auto job =
      run(2, device.path(), {"mixed", "20"}, openmpi_test::last_rank_by({"env", "OMPI_MCA_coll_gba_early_barriers=5"}));
  EXPECT_THAT(job, Passes(AllOf(HasSubstr(kSelected), HasSubstr(", fallen back 0,"))));
  // 20 rounds have 50 non-blocking barriers and 7 blocking ones.
  EXPECT_EQ(sum_of(job.output, "offloaded"), 52);
  EXPECT_EQ(releases_of(device), 52);
}

/// Only barriers of the device have the time limit.
TEST_F(Barrier, IsDoneByTheDeviceFromTheFirstOneOnWithALimit) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"world", "3"},
                       {"--mca", "coll_gba_early_barriers", "2", "--mca", "coll_gba_timeout", "100"});
  EXPECT_THAT(job, Passes(HasLine("0 failures, offloaded 3, fallen back 0,")));
}

TEST_F(Barrier, MayBeCalledByManyThreads) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"threads", std::to_string(repeats(20, 1000)), "4"});
  EXPECT_THAT(job, Passes(HasSubstr(", fallen back 0,")));
  EXPECT_EQ(releases_of(device), sum_of(job.output, "offloaded"));
}

/// Open MPI's own tools show the parameters of both components.
TEST_F(Barrier, ParametersAreShown) {
  for (const std::string framework : {"coll", "scoll"}) {
    const std::string component = std::string(OPENMPI_COMPONENTS) + "/mca_" + framework + "_gba.so";
    if (framework == "scoll" && !std::filesystem::exists(component)) {
      continue;
    }
    const auto info = test_support::run(
        {framework == "coll" ? "ompi_info" : "oshmem_info", "--param", framework, "gba", "--level", "9"},
        {std::string("OMPI_MCA_mca_base_component_path=") + OPENMPI_COMPONENTS + ":SYS_DEFAULT"});
    const std::string least = framework == "coll" ? "min_comm_size" : "min_group_size";
    for (const std::string name : {"priority", "disable", "device_path", least.c_str(), "timeout", "verbose", "spin"}) {
      EXPECT_THAT(info.output,
                  HasSubstr(std::string("parameter \"").append(framework).append("_gba_").append(name) + '"'));
    }
    EXPECT_THAT(info.output, HasSubstr("_gba_device_path\" (current value: \"/dev/gba0\", data source: default"));
    if (framework == "coll") {
      EXPECT_THAT(info.output, HasSubstr("parameter \"coll_gba_early_barriers\" (current value: \"2\""));
    }
    for (const char* name : {"offloaded", "fallen_back", "waiting_ns"}) {
      EXPECT_THAT(info.output, HasSubstr("performance \"" + framework + "_gba_" + name + "\""));
    }
  }
}

TEST_F(Barrier, NeedNotBeCalled) {
  const FakeDevice device;
  for (int time = 0; time < repeats(3, 100); ++time) {
    const auto job = run(3, device.path(), {"idle", "0"});
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

}  // namespace
