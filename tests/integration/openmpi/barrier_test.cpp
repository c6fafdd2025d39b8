// SPDX-License-Identifier: Apache-2.0
// MPI programs whose barriers the device does, by the component coll/gba.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::Mpirun;
using test_support::FakeDevice;
using test_support::repeats;
using test_support::sum_of;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Barrier = Mpirun;

constexpr const char* kSelected = "MPI_COMM_WORLD: the device does the barriers";

/// The component says that it was selected, and the device that it has counted each barrier.
TEST_F(Barrier, IsDoneByTheDevice) {
  for (const int ranks : {2, 4, 8}) {
    const FakeDevice device;
    const int barriers = repeats(50, 1000);
    const auto job = run(ranks, device.path(), {"world", std::to_string(barriers)});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, HasSubstr("0 failures, offloaded " + std::to_string(barriers) + ", fallen back 0,"));
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

TEST_F(Barrier, IsDoneOnEveryKindOfIntracommunicator) {
  for (const int ranks : {5, 8}) {
    const FakeDevice device;
    const auto job = run(ranks, device.path(), {"kinds", std::to_string(repeats(2, 50))});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr(", fallen back 0,"))) << ranks;
  }
}

TEST_F(Barrier, OfAnIntercommunicatorIsLeftToOthers) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"inter", "3"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("it is an intercommunicator"));
}

/// The device has 32 groups; MPI_COMM_WORLD has the first one.
TEST_F(Barrier, FallsThroughWhereNoGroupIsLeft) {
  const FakeDevice device;
  const auto all = run(2, device.path(), {"many", "32", "1"});
  EXPECT_TRUE(all.exit.clean()) << all.output;
  EXPECT_THAT(all.output, AllOf(Not(HasSubstr("got no group")), HasSubstr(", fallen back 0,")));
  const auto more = run(2, device.path(), {"many", "33", "2"});
  EXPECT_TRUE(more.exit.clean()) << more.output;
  EXPECT_THAT(more.output, HasSubstr("the previous module does the barriers: rank 0 got no group of the device"));
}

/// More often than the device has groups: they are given back.
TEST_F(Barrier, OutlivesManyCommunicators) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"churn", std::to_string(repeats(150, 10'000))});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("\n0 failures, "));
  EXPECT_GE(sum_of(job.output, "offloaded"), 100);
}

/// However far the ranks are when the device is lost.
TEST_F(Barrier, IsDoneWithoutTheDeviceThatIsKilled) {
  for (int time = 0; time < repeats(5, 50); ++time) {
    FakeDevice device;
    const auto job = run(2 + time % 3, device.path(),
                         {"killed", "60", std::to_string(10 + time), std::to_string(device.process().pid())});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "fallen back"), 1);
  }
}

TEST_F(Barrier, IsMendedWhereReleasesAreLost) {
  const FakeDevice device({"--fault", "drop-release:group=0,member=1,count=5"});
  const auto job = run(3, device.path(), {"world", "20"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("0 failures, offloaded 20, fallen back 0,"));
}

TEST_F(Barrier, MayBeCalledByManyThreads) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"threads", std::to_string(repeats(20, 1000)), "4"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("\n0 failures, "), HasSubstr(", fallen back 0,")));
  EXPECT_EQ(releases_of(device), sum_of(job.output, "offloaded"));
}

TEST_F(Barrier, NeedNotBeCalled) {
  const FakeDevice device;
  for (int time = 0; time < repeats(3, 100); ++time) {
    const auto job = run(3, device.path(), {"idle", "0"});
    EXPECT_TRUE(job.exit.clean()) << job.output;
  }
}

TEST_F(Barrier, IsDoneWithoutTheDeviceThatOneRankCannotOpen) {
  const FakeDevice device({"--ports", "1"});
  const auto job = run(2, device.path(), {"mixed", "20"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("0 failures, offloaded 0,"), HasSubstr("cannot use a device (Device or resource busy)")));
}

TEST_F(Barrier, IsDoneWithoutADevice) {
  for (const char* path : {"", "/nonexistent", "/dev/null"}) {
    const auto job = run(2, path, {"mixed", "20"}, {"-x", "GBA_DEVICE="});
    EXPECT_TRUE(job.exit.clean()) << job.output;
    EXPECT_THAT(job.output, AllOf(HasSubstr("0 failures, offloaded 0,"), Not(HasSubstr(kSelected)))) << path;
  }
}

TEST_F(Barrier, IsDoneWhereSomeRanksDoWithoutTheComponent) {
  const FakeDevice device;
  const auto job = run(1, device.path(),
                       {"mixed", "20", ":", "-np", "1", "env", "OMPI_MCA_coll_gba_disable=1",
                        test_support::test_program("openmpi_barrier_ranks"), entered(), "mixed", "20"});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("a member does without the component"));
}

/// Another release's structs differ: the component refuses to be opened, and says so.
TEST_F(Barrier, IsLeftAloneInAnotherRelease) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"world", "5"}, {"-x", "LD_PRELOAD=" OPENMPI_OTHER_RELEASE});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              HasSubstr("coll:gba: not used: it was built for Open MPI v4.1.*, and this is Open MPI v5.0.3"));
  EXPECT_EQ(releases_of(device), 0);
}

TEST_F(Barrier, NamesWhoDoesNotCome) {
  const FakeDevice device;
  const auto job = run(3, device.path(), {"late", "1"}, {"--mca", "coll_gba_timeout", "1"});
  EXPECT_FALSE(job.exit.clean());
  EXPECT_THAT(job.output, HasSubstr("MPI_COMM_WORLD has taken 1 s (coll_gba_timeout); ranks that have not come: 1\n"));
}

}  // namespace
