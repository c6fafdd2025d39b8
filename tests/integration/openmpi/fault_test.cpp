// SPDX-License-Identifier: Apache-2.0
// Failures of the device: no barrier of MPI is lost.
#include <sstream>

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
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

using Fault = Mpirun;

/// The device is lost at random moments.
TEST_F(Fault, BarriersGoOnWithoutAKilledDevice) {
  for (int time = 0; time < repeats(5, 50); ++time) {
    FakeDevice device;
    const auto job = run(2 + time % 3, device.path(),
                         {"killed", "60", std::to_string(10 + time), std::to_string(device.process().pid())});
    EXPECT_THAT(job, Passes(HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "fallen back"), 1);
  }
}

TEST_F(Fault, BarriersGoOnWithoutAResetDevice) {
  const FakeDevice device({"--admin-socket", entered() + ".admin"});
  const std::string reset = test_support::program("gba") + " reset --yes vfio-user:" + entered() + ".admin";
  const auto job = run(3, device.path(), {"reset", "20", "7", reset});
  EXPECT_THAT(job, Passes(AllOf(HasLine("0 failures, offloaded 7, fallen back "),
                                HasSubstr("no device any more: gba: group 0: barrier 8 will not be released: the group "
                                          "or the device was reset"))));
}

TEST_F(Fault, LostReleasesAreRecovered) {
  for (const char* kind : {"world", "mixed"}) {
    const FakeDevice device({"--fault", "drop-release:group=0,member=1,count=5"});
    const auto job = run(3, device.path(), {kind, "20"});
    EXPECT_THAT(job, Passes(HasSubstr(", fallen back 0,"))) << kind;
  }
}

/// Without CAP_DAC_OVERRIDE even root is subject to the permissions of a socket.
TEST_F(Fault, DeviceIsNotUsedIfARankHasNoPermission) {
  const bool root = geteuid() == 0;
  if (root && !test_support::run({"setpriv", "--bounding-set=-dac_override", "true"}).exit.clean()) {
    GTEST_SKIP() << "setpriv cannot take CAP_DAC_OVERRIDE from a process of root";
  }
  const FakeDevice device({"--mode", "0"});
  const Options without = root ? openmpi_test::last_rank_by({"setpriv", "--bounding-set=-dac_override"}) : Options{};
  const auto job = run(2, device.path(), {"mixed", "20"}, without);
  EXPECT_THAT(
      job,
      Passes(AllOf(HasLine("0 failures, offloaded 0,"),
                   HasSubstr((root ? "rank 1" : "rank 0") + std::string(" cannot use a device (Permission denied)")))));
}

/// Some ranks share the port of others.
TEST_F(Fault, BarriersGoOnWithoutAKilledDeviceOfSharedPorts) {
  for (int time = 0; time < repeats(2, 50); ++time) {
    FakeDevice device({"--ports", "2"});
    const auto job =
        run(4, device.path(), {"killed", "60", std::to_string(10 + time), std::to_string(device.process().pid())});
    EXPECT_THAT(job, Passes(HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "fallen back"), 1);
  }
}

/// Another process has all ports of the device.
TEST_F(Fault, DeviceThatNoRankCanOpenIsNotUsed) {
  const FakeDevice device({"--ports", "1"});
  test_support::Process other({test_support::program("gba"), "groups", "--watch", device.path()});
  ASSERT_TRUE(other.wait_for_output("0 of 32 groups", openmpi_test::kLimit));
  const auto job = run(2, device.path(), {"mixed", "20"});
  EXPECT_THAT(job, Passes(AllOf(HasLine("0 failures, offloaded 0,"),
                                HasSubstr("cannot use a device (Device or resource busy)"))));
}

TEST_F(Fault, BarriersWorkWithoutADevice) {
  for (const char* path : {"", "/nonexistent", "/dev/null"}) {
    const auto job = run(2, path, {"mixed", "20"}, {"-x", "GBA_DEVICE="});
    EXPECT_THAT(job, Passes(AllOf(HasLine("0 failures, offloaded 0,"), Not(HasSubstr("the device does the barriers")))))
        << path;
  }
}

/// The lines with the functions that MPI calls. mpirun may put a line of the error output between them.
std::string called(const std::string& output) {
  std::istringstream lines(output);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("MPI_Barrier: ") || line.starts_with("MPI_Ibarrier: ")) {
      found += line + '\n';
    }
  }
  return found;
}

/// Without a device, MPI_Barrier calls the same function as without the component: from the start if no device is
/// configured, and after the first barrier if one is. So the component costs nothing in a barrier.
TEST_F(Fault, ComponentCostsNothingWithoutADevice) {
  const Options none{"-x", "GBA_DEVICE="};
  const std::string without = called(run(2, "", {"whose", "0"}, {"--mca", "coll", "^gba"}).output);
  EXPECT_THAT(without, AllOf(HasSubstr("MPI_Barrier: "), Not(HasSubstr("gba"))));
  EXPECT_EQ(called(run(2, "", {"whose", "0"}, none).output), without);
  EXPECT_EQ(called(run(2, "/nonexistent", {"whose", "1"}, none).output), without);
  const FakeDevice device;
  EXPECT_THAT(called(run(2, device.path(), {"whose", "1"}, none).output),
              AllOf(HasSubstr("MPI_Barrier: mca_coll_gba.so+"), HasSubstr("MPI_Ibarrier: mca_coll_gba.so+")));
}

TEST_F(Fault, DeviceIsNotUsedIfARankDoesNotUseTheComponent) {
  const FakeDevice device;
  const auto job =
      run(2, device.path(), {"mixed", "20"}, openmpi_test::last_rank_by({"env", "OMPI_MCA_coll_gba_disable=1"}));
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("a member does not use the component"));
}

/// Another release's structs differ: the component refuses to be opened, and says so.
TEST_F(Fault, ComponentRefusesAnotherReleaseOfOpenMpi) {
  const FakeDevice device;
  const auto job = run(2, device.path(), {"world", "5"}, {"-x", "LD_PRELOAD=" OPENMPI_OTHER_RELEASE});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  const std::string built = "coll:gba: not used: it was built for Open MPI v";
  EXPECT_THAT(job.output, AnyOf(HasSubstr(built + "4.1.*, and this is Open MPI v5.0.3"),
                                HasSubstr(built + "5.0.*, and this is Open MPI v4.1.4"),
                                HasSubstr(built + "6.0.*, and this is Open MPI v4.1.4")));
  EXPECT_EQ(releases_of(device), 0);
}

}  // namespace
