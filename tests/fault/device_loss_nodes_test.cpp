// SPDX-License-Identifier: Apache-2.0
// PEs on several nodes, which are environments on this machine: the nodes synchronise through the device as long as it
// works and by messages afterwards; no barrier is lost with the device.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/support/pe.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/gba_debug.h"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

struct Nodes {
  int nodes, pes_each;
  [[nodiscard]] int pes() const { return nodes * pes_each; }
};

/// Runs barrier_pes on such nodes. The shell of each PE runs `script` first, with the number of its node in $node.
std::vector<std::string> job_on(const Nodes& nodes, const std::string& gba, std::uint64_t rounds,
                                const std::string& script = "true") {
  const std::string line = "node=$((OSHRUN_RANK / " + std::to_string(nodes.pes_each) +
                           ")); export SHMEM_HOST_ID=node$node; " + script + "; exec \"$0\" \"$@\"";
  return oshrun(nodes.pes(), gba,
                {"/bin/sh", "-c", line, test_program("barrier_pes"), std::to_string(rounds), "--watch"});
}

constexpr std::uint64_t kEndless = 1'000'000'000'000;

/// Ends endless barriers. Some come after the signal: what has failed before it has failed in their middle.
void end_barriers(Process& job, int pes) {
  ASSERT_EQ(::kill(pid_of(job.output(), 0), SIGUSR1), 0);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit) << "still running:\n" << job.output();
  ASSERT_TRUE(exit->clean()) << job.output();
  EXPECT_EQ((sum_of(job.output(), "by device") + sum_of(job.output(), "by software")) % static_cast<unsigned>(pes), 0U)
      << "a PE has completed fewer barriers:\n"
      << job.output();
  EXPECT_GT(sum_of(job.output(), "by software"), 0U) << job.output();
}

class DeviceOfNodesBase : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!has_network()) {
      GTEST_SKIP() << kNoNetwork;
    }
    const auto job = run(job_on({2, 1}, "off", 1));
    ASSERT_TRUE(job.exit.clean()) << job.output;
  }
};

class DeviceOfNodes : public DeviceOfNodesBase, public testing::WithParamInterface<Nodes> {};

TEST_P(DeviceOfNodes, CountsTheirBarriers) {
  FakeDevice device;
  const int rounds = 100;
  const auto job = run(job_on(GetParam(), device.path(), rounds), {"SHMEM_INFO=1", "SHMEM_GBA=require"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output,
              HasSubstr("barrier gba; its " + std::to_string(GetParam().nodes) + " nodes synchronise through it"));
  EXPECT_EQ(sum_of(job.output, "by software"), 0U) << job.output;
  const auto told = run({program("gba"), "info", "--json", device.path()});
  EXPECT_GE(sum_of(told.output, "\"releases\":"), static_cast<unsigned long long>(rounds)) << told.output;
}

TEST_P(DeviceOfNodes, IsKilledAndNoBarrierIsLost) {
  std::minstd_rand random(std::random_device{}());
  for (int i = 0; i < repeats(4, 250); ++i) {
    FakeDevice device;
    Process job(job_on(GetParam(), device.path(), kEndless));
    ASSERT_TRUE(job.wait_for_output("PE 0 pid", kLimit)) << job.output();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30000));
    device.process().signal(SIGKILL);
    ASSERT_NO_FATAL_FAILURE(end_barriers(job, GetParam().pes()));
  }
}

TEST_P(DeviceOfNodes, IsResetAndNoBarrierIsLost) {
  TempDir dir;
  const FakeDevice device({"--admin-socket", dir.file("admin.sock")});
  Process job(job_on(GetParam(), device.path(), kEndless), {"SHMEM_INFO=1"});
  ASSERT_TRUE(job.wait_for_output("in use, 1 times", kLimit)) << job.output();
  const auto reset = run({program("gba"), "reset", "--yes", dir.file("admin.sock")});
  ASSERT_TRUE(reset.exit.clean()) << reset.output;
  ASSERT_TRUE(job.wait_for_output("in use, 2 times", kLimit)) << job.output();
  end_barriers(job, GetParam().pes());
}

// Each loss but the first one comes while the leaders open their ports, join the new group, or have just returned.
TEST_P(DeviceOfNodes, IsKilledWhileItsTeamReturnsAndIsInUseInTheEnd) {
  std::minstd_rand random(std::random_device{}());
  for (int i = 0; i < repeats(2, 50); ++i) {
    FakeDevice device;
    Process job(job_on(GetParam(), device.path(), kEndless), {"SHMEM_INFO=1"});
    ASSERT_TRUE(job.wait_for_output("in use, 1 times", kLimit)) << job.output();
    for (int loss = 0; loss < 7; ++loss) {
      device.kill();
      device.start();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
    }
    device.kill();
    const int times = count_of(job.output(), "in use, ");
    device.start();
    ASSERT_TRUE(job.wait_for_output("in use, " + std::to_string(times + 1) + " times", kLimit)) << job.output();
    ASSERT_NO_FATAL_FAILURE(end_barriers(job, GetParam().pes()));
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, DeviceOfNodes, Values(Nodes{2, 2}, Nodes{3, 1}), [](const auto& test) {
  return std::to_string(test.param.nodes) + "x" + std::to_string(test.param.pes_each);
});

class DeviceOfTwoNodes : public DeviceOfNodesBase {};

TEST_F(DeviceOfTwoNodes, FallsSilentAndNoBarrierIsLost) {
  FakeDevice device;
  Process job(job_on({2, 2}, device.path(), 1000));
  ASSERT_TRUE(job.wait_for_output("started", kLimit)) << job.output();
  device.process().stop();
  const auto exit = job.wait(kLimit);
  device.process().resume();
  ASSERT_TRUE(exit) << "still running after the device was stopped:\n" << job.output();
  EXPECT_TRUE(exit->clean()) << job.output();
}

// A leader that the device has released computes for as long as it likes. The other leader loses its release and then
// the device, and needs the words of the barrier that the first leader has left.
TEST_F(DeviceOfTwoNodes, IsLostToOneLeaderWhileTheOtherComputes) {
  const FakeDevice device({"--debug-region"});
  TempDir dir;
  const std::string board = dir.file("board");
  std::ofstream(board).flush();
  std::filesystem::resize_file(board, 4096);
  Process job(oshrun(2, device.path(),
                     {"/bin/sh", "-c", R"(export SHMEM_HOST_ID=node$OSHRUN_RANK; exec "$0" "$@")",
                      test_program("shmem_pes"), "computing", board}),
              {"SHMEM_GBA=require"});
  ASSERT_TRUE(job.wait_for_output("started", kLimit)) << job.output();
  raw::Port client(device.socket());
  ASSERT_EQ(client.write(GBA_DEBUG_MEMBER, 1, 8, GBA_REGION_DEBUG), 0);
  ASSERT_EQ(client.write(GBA_DEBUG_COUNT, GBA_DEBUG_ANY, 8, GBA_REGION_DEBUG), 0);
  ASSERT_EQ(client.write(GBA_DEBUG_INJECT, GBA_INJECT_DROP_RELEASE, 8, GBA_REGION_DEBUG), 0);
  const auto struck = [&] { return client.read(GBA_DEBUG_STRUCK, 8, GBA_REGION_DEBUG); };
  const auto end = std::chrono::steady_clock::now() + kLimit;
  while (struck() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  ASSERT_GT(struck(), 0U) << job.output();
  client.write(GBA_DEBUG_PORT, GBA_DEBUG_ANY, 8, GBA_REGION_DEBUG);
  client.write(GBA_DEBUG_INJECT, GBA_INJECT_REMOVE, 8, GBA_REGION_DEBUG);  // removes its own port too
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit) << "a PE still waits:\n" << job.output();
  EXPECT_TRUE(exit->clean()) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("over, without the device"));
}

TEST_F(DeviceOfTwoNodes, IsNotUsedIfAComputingLeaderCouldNotBeAsked) {
  const FakeDevice device;
  const auto job = run(job_on({2, 1}, device.path(), 20), {"SHMEM_PROGRESS_THREAD=0"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(sum_of(job.output, "by device"), 0U) << job.output;
  EXPECT_THAT(job.output, HasSubstr("SHMEM_PROGRESS_THREAD=0"));
}

TEST(DeviceOfOneNode, IsNotUsedByATeamOfBothNodesWhichSaysWhy) {
  const FakeDevice device;
  const auto job = run(job_on({2, 2}, device.path(), 20, "[ $node = 0 ] || export GBA_DEVICE=vfio-user:/nonexistent"),
                       {"SHMEM_INFO=1"});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(sum_of(job.output, "by device"), 0U) << job.output;
  EXPECT_THAT(job.output, HasSubstr("its 2 nodes synchronise by messages, not through a GBA: PE 2 (on "));
  EXPECT_THAT(job.output, HasSubstr("/nonexistent"));
}

}  // namespace
