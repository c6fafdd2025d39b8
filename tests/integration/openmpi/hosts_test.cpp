// SPDX-License-Identifier: Apache-2.0
// Jobs of Open MPI on several hosts: its mpirun starts daemons there, and its MPI and OpenSHMEM use the network.
#include "tests/support/hosts.hpp"

#include "tests/integration/openmpi/mpirun.hpp"
#include "tests/support/openmpi_network.hpp"

namespace {

using openmpi_test::HasLine;
using test_support::FakeDevice;
using test_support::Hosts;
using test_support::Process;
using testing::AllOf;
using testing::HasSubstr;

class OnHosts : public openmpi_test::Mpirun {
 protected:
  void SetUp() override {
    Mpirun::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (const auto missing = Hosts::missing()) {
      GTEST_SKIP() << *missing;
    }
    hosts_ = std::make_unique<Hosts>(2);
  }

  /// Runs two ranks on each host, and counts the frames that go over the network.
  [[nodiscard]] std::string over(std::vector<std::string> network, const std::string& program, int rounds,
                                 const std::string& device = "") {
    network_ = std::move(network);
    const auto before = hosts_->traffic(1);
    const auto job =
        run_program(program, 4, {"world", std::to_string(rounds)},
                    {"--host", hosts_->slots(2), "--bind-to", "none", "--mca", "coll_gba_device_path", device});
    const auto after = hosts_->traffic(1);
    EXPECT_TRUE(job.exit.clean()) << job.output;
    frames_ = std::min(after.sent - before.sent, after.received - before.received);
    return job.output;
  }

  [[nodiscard]] std::unique_ptr<Process> start(const std::vector<std::string>& line,
                                               const std::vector<std::string>& environment) const override {
    auto all = environment;
    all.insert(all.end(), network_.begin(), network_.end());
    return std::make_unique<Process>(hosts_->on(0, line), all);
  }

  std::unique_ptr<Hosts> hosts_;
  std::vector<std::string> network_;
  std::uint64_t frames_ = 0;
};

const int kRounds = test_support::repeats(150, 1000);

TEST_F(OnHosts, MpiSynchronisesOverUcxAndTcp) {
  for (const auto& network : {test_support::openmpi_over_ucx(), test_support::openmpi_over_tcp()}) {
    EXPECT_THAT(over(network, "openmpi_barrier_ranks", kRounds), HasLine("0 failures, "));
    EXPECT_GT(frames_, static_cast<unsigned>(kRounds));
  }
}

TEST_F(OnHosts, OpenShmemPutsAndSynchronisesOverUcx) {
  EXPECT_THAT(over(test_support::openmpi_over_ucx(), "openmpi_shmem_ranks", kRounds),
              AllOf(HasLine("0 failures, "), HasSubstr("by the device 0,")));
  EXPECT_GT(frames_, static_cast<unsigned>(kRounds));
}

TEST_F(OnHosts, MpiUsesADeviceThatIsNotOnTheNetwork) {
  const FakeDevice device;
  EXPECT_THAT(over(test_support::openmpi_over_ucx(), "openmpi_barrier_ranks", kRounds, device.path()),
              AllOf(HasSubstr("4 members on 2 nodes"), HasLine("0 failures, "), HasSubstr(", fallen back 0,")));
  EXPECT_LT(frames_, static_cast<unsigned>(kRounds));
}

}  // namespace
