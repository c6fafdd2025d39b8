// SPDX-License-Identifier: Apache-2.0
// Ranks on two nodes, which are processes of this machine with different host names: after the device is lost they
// synchronise by messages.
#include "tests/integration/openmpi/mpirun.hpp"

namespace {

using openmpi_test::HasLine;
using openmpi_test::Options;
using openmpi_test::Passes;
using test_support::FakeDevice;
using test_support::repeats;
using test_support::sum_of;
using testing::AllOf;
using testing::HasSubstr;

class Nodes : public openmpi_test::Mpirun {
 protected:
  void SetUp() override {
    Mpirun::SetUp();
    if (!test_support::run({"unshare", "--uts", "true"}).exit.clean()) {
      GTEST_SKIP() << "other host names need root (unshare --uts)";
    }
  }
  const Options options_ = openmpi_test::two_nodes(OPENMPI_NODE_AGENT);
};

TEST_F(Nodes, ShareTheDevice) {
  const FakeDevice device;
  const auto job = run(4, device.path(), {"kinds", std::to_string(repeats(2, 50))}, options_);
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, AllOf(HasSubstr("4 members on 2 nodes"), HasSubstr("2 members on 1 node\n")));
  EXPECT_THAT(job.output, AllOf(HasLine("0 failures, "), HasSubstr(", fallen back 0,")));
}

TEST_F(Nodes, FinishBarriersWithoutAKilledDevice) {
  for (int time = 0; time < repeats(3, 50); ++time) {
    FakeDevice device;
    const auto job = run(4, device.path(),
                         {"killed", "60", std::to_string(10 + time), std::to_string(device.process().pid())}, options_);
    EXPECT_THAT(job, Passes(HasSubstr("no device any more")));
    EXPECT_GE(sum_of(job.output, "fallen back"), 1);
  }
}

TEST_F(Nodes, FreeCommunicatorsWhileTheDeviceIsKilled) {
  for (int time = 0; time < repeats(2, 50); ++time) {
    FakeDevice device;
    const auto job = run(4, device.path(),
                         {"parting", "12", std::to_string(5 + time), std::to_string(device.process().pid())}, options_);
    EXPECT_THAT(job, Passes(testing::_));
  }
}

/// The last rank's release is lost for good, which it finds out after a second. By then the others, including the
/// leaders, have been released and have freed the communicator: they still answer.
TEST_F(Nodes, AnswerWhenTheyHaveLeft) {
  const FakeDevice device({"--fault", "drop-release:group=1,member=3,count=1000000"});
  const auto job = run(4, device.path(), {"parting", "1", "0", "0"}, options_);
  EXPECT_THAT(job, Passes(HasSubstr("group 1 of 4 members on 2 nodes")));
}

}  // namespace
