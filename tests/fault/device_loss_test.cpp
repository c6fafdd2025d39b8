// SPDX-License-Identifier: Apache-2.0
// The device, or one PE's connection to it, is lost in the middle of a run of barriers: every PE finishes all of them.
#include <gtest/gtest.h>
#include <signal.h>

#include <random>
#include <thread>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace {

using test_support::FakeDevice;
using test_support::oshrun;
using test_support::Process;
using test_support::repeats;
using test_support::run;
using test_support::Seconds;
using test_support::sum_of;
using test_support::test_program;

constexpr int kRounds = 40000;

TEST(DeviceLoss, NoBarrierIsLostWhenTheDeviceIsKilled) {
  std::minstd_rand random(std::random_device{}());
  int in_mid_run = 0;
  for (int i = 0; i < repeats(20, 500); ++i) {
    FakeDevice device;
    const int pes = 2 + i % 4;
    Process job(oshrun(pes, device.path(), {test_program("barrier_pes"), std::to_string(kRounds)}));
    ASSERT_TRUE(job.wait_for_output("started", Seconds{20})) << job.output();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100000));
    device.process().signal(SIGKILL);
    const auto exit = job.wait(Seconds{100});
    ASSERT_TRUE(exit) << "still running after the device was killed:\n" << job.output();
    ASSERT_TRUE(exit->clean()) << job.output();
    const auto by_software = sum_of(job.output(), "by software");
    ASSERT_GE(sum_of(job.output(), "by device") + by_software, static_cast<unsigned long long>(pes) * kRounds);
    in_mid_run += by_software > 0 ? 1 : 0;
  }
  EXPECT_GT(in_mid_run, 0) << "the device was never killed before the barriers were over";
}

TEST(DeviceLoss, NoBarrierIsLostWhenThePrivateDeviceOfAJobIsKilled) {
  Process job(oshrun(3, "fake", {test_program("barrier_pes"), "200000"}));
  ASSERT_TRUE(job.wait_for_output("started", Seconds{20})) << job.output();
  // The job is in a process group of its own, its device is the launcher's child.
  const auto killed = run({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-x", "gba-fake-device"});
  ASSERT_TRUE(killed.exit.clean()) << killed.output;
  const auto exit = job.wait(Seconds{100});
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->clean()) << job.output();
  EXPECT_GT(sum_of(job.output(), "by software"), 0U) << job.output();
}

TEST(DeviceLoss, NoBarrierIsLostWhenOnePeLosesItsConnection) {
  for (int i = 0; i < repeats(8, 200); ++i) {
    FakeDevice device;
    const int pes = 2 + i % 4;
    const std::string cut = std::to_string(i % pes);
    const auto job =
        run(oshrun(pes, device.path(), {test_program("barrier_pes"), "5000", "--cut", cut, "2500"}), {}, Seconds{100});
    ASSERT_TRUE(job.exit.clean()) << job.output;
    ASSERT_NE(job.output.find("cut 1 connections"), std::string::npos) << job.output;
    EXPECT_GE(sum_of(job.output, "by device"), static_cast<unsigned long long>(pes) * 2400) << job.output;
    EXPECT_GE(sum_of(job.output, "by software"), static_cast<unsigned long long>(pes)) << job.output;
  }
}

TEST(DeviceLoss, ANewJobUsesTheDeviceAfterOneThatWasKilled) {
  FakeDevice device;
  for (int i = 0; i < 5; ++i) {
    Process job(oshrun(4, device.path(), {test_program("barrier_pes"), "100000000"}));
    ASSERT_TRUE(job.wait_for_output("PE 3 pid", Seconds{20})) << job.output();
    job.signal(SIGKILL);
    ASSERT_TRUE(job.wait(Seconds{10}));
  }
  const auto job = run(oshrun(4, device.path(), {test_program("barrier_pes"), "1000"}), {}, Seconds{30});
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_GE(sum_of(job.output, "by device"), 4000U) << job.output;
}

}  // namespace
