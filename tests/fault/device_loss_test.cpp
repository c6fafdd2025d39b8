// SPDX-License-Identifier: Apache-2.0
// The device, or one PE's connection to it, is lost in the middle of a run of barriers: every PE completes all of them,
// and the PEs use the device again when it is available.
#include <signal.h>

#include <array>
#include <functional>
#include <random>

#include "tests/support/pe.hpp"
#include "tools/raw_client/raw_client.hpp"
#include "uapi/gba_debug.h"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{600};

/// Enough that the device is killed before the last one, and few enough for PEs that get little processor time.
int rounds() {
  return repeats(10000, 40000);
}

TEST(DeviceLoss, NoBarrierIsLostWhenTheDeviceIsKilled) {
  std::minstd_rand random(std::random_device{}());
  int in_mid_run = 0;
  for (int i = 0; i < repeats(20, 500); ++i) {
    FakeDevice device;
    const int pes = 2 + i % 4;
    Process job(oshrun(pes, device.path(), {test_program("barrier_pes"), std::to_string(rounds())}));
    ASSERT_TRUE(job.wait_for_output("started", kLimit)) << job.output();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % static_cast<unsigned>(rounds() * 5 / 2)));
    device.process().signal(SIGKILL);
    const auto exit = job.wait(kLimit);
    ASSERT_TRUE(exit) << "still running after the device was killed:\n" << job.output();
    ASSERT_TRUE(exit->clean()) << job.output();
    const auto by_software = sum_of(job.output(), "by software");
    ASSERT_GE(sum_of(job.output(), "by device") + by_software, static_cast<unsigned long long>(pes * rounds()));
    in_mid_run += by_software > 0 ? 1 : 0;
  }
  EXPECT_GT(in_mid_run, 0) << "the device was never killed before the barriers were over";
}

TEST(DeviceLoss, NoBarrierIsLostWhenThePrivateDeviceOfAJobIsKilled) {
  Process job(oshrun(3, "fake", {test_program("barrier_pes"), "1000000000000"}));
  ASSERT_TRUE(job.wait_for_output("PE 0 pid", kLimit)) << job.output();
  // The private device is a child of the launcher.
  const auto killed = run({"pkill", "-KILL", "-P", std::to_string(job.pid()), "-x", "gba-fake-device"});
  ASSERT_TRUE(killed.exit.clean()) << killed.output;
  ASSERT_EQ(::kill(pid_of(job.output(), 0), SIGUSR1), 0);
  const auto exit = job.wait(kLimit);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->clean()) << job.output();
  EXPECT_GT(sum_of(job.output(), "by software"), 0U) << job.output();
}

TEST(DeviceLoss, NoBarrierIsLostWhenTheDeviceFallsSilent) {
  FakeDevice device;
  Process job(oshrun(4, device.path(), {test_program("barrier_pes"), std::to_string(rounds())}));
  ASSERT_TRUE(job.wait_for_output("started", kLimit)) << job.output();
  device.process().stop();
  const auto exit = job.wait(kLimit);
  device.process().resume();
  ASSERT_TRUE(exit) << "still running after the device was stopped:\n" << job.output();
  EXPECT_TRUE(exit->clean()) << job.output();
}

TEST(DeviceLoss, NoBarrierIsLostWhenOnePeLosesItsConnection) {
  for (int i = 0; i < repeats(8, 200); ++i) {
    FakeDevice device;
    const int pes = 2 + i % 4;
    const std::string cut = std::to_string(i % pes);
    const auto job = run_pes(pes, device.path(), {"barrier_pes", "5000", "--cut", cut, "2500"}, {}, kLimit);
    ASSERT_TRUE(job.exit.clean()) << job.output;
    ASSERT_THAT(job.output, HasSubstr("cut 1 connections"));
    EXPECT_GE(sum_of(job.output, "by device"), static_cast<unsigned long long>(pes) * 2400) << job.output;
    EXPECT_GE(sum_of(job.output, "by software"), static_cast<unsigned long long>(pes)) << job.output;
  }
}

TEST(DeviceLoss, ANewJobUsesTheDeviceAfterOneThatWasKilled) {
  FakeDevice device;
  for (int i = 0; i < 5; ++i) {
    Process job(oshrun(4, device.path(), {test_program("barrier_pes"), "100000000"}));
    ASSERT_TRUE(job.wait_for_output("PE 3 pid", kLimit)) << job.output();
    job.signal(SIGKILL);
    ASSERT_TRUE(job.wait(kLimit));
  }
  const auto job = run_pes(4, device.path(), {"barrier_pes", "1000"}, {}, kLimit);
  ASSERT_TRUE(job.exit.clean()) << job.output;
  EXPECT_GE(sum_of(job.output, "by device"), 4000U) << job.output;
}

constexpr int kShared = 2;

/// A job that runs barriers without end, and failures of its device, which has GetParam() ports.
class Recovery : public testing::TestWithParam<int> {
 protected:
  void start_job(int pes) {
    pes_ = pes;
    job_ = std::make_unique<Process>(
        oshrun(pes, device_.path(), {test_program("barrier_pes"), "1000000000000", "--watch"}));
    for (int pe = 0; pe < pes; ++pe) {
      ASSERT_TRUE(job_->wait_for_output("PE " + std::to_string(pe) + " pid", kLimit)) << job_->output();
    }
    times_in_use_ = 0;
    await_use();
  }

  /// Waits until the PEs use the device once more.
  void await_use() {
    const std::string text = "the device is in use, " + std::to_string(times_in_use_ + 1) + " times by now;";
    ASSERT_TRUE(job_->wait_for_output(text, kLimit)) << job_->output();
    times_in_use_ = count("the device is in use");
  }

  void end_job() {
    ASSERT_EQ(::kill(pid_of(job_->output(), 0), SIGUSR1), 0);
    const auto exit = job_->wait(kLimit);
    ASSERT_TRUE(exit) << "still running:\n" << job_->output();
    EXPECT_TRUE(exit->clean()) << job_->output();
    EXPECT_EQ(count(": gba, early 0,"), pes_) << job_->output();
  }

  void wait_a_moment() { std::this_thread::sleep_for(std::chrono::microseconds(random_() % 20000)); }

  // ---- Failures of the device
  void kill_device() {
    device_.process().signal(SIGKILL);
    start_again();
  }
  void restart_device() {
    device_.process().signal(SIGTERM);
    start_again();
  }
  void reset_device() {
    const auto reset = run({program("gba"), "reset", "--yes", admin_path()});
    EXPECT_TRUE(reset.exit.clean()) << reset.output;
  }
  void unplug_device() { inject(GBA_INJECT_REMOVE, GBA_DEBUG_ANY); }
  void cut_one_connection() {
    // A PE with its own connection; the other PEs share a port with one of these.
    const int pe = static_cast<int>(random_() % static_cast<unsigned>(std::min(pes_, GetParam())));
    ASSERT_EQ(::kill(pid_of(job_->output(), pe), SIGUSR2), 0);
  }

  std::minstd_rand random_{std::random_device{}()};

 private:
  void start_again() {
    ASSERT_TRUE(device_.process().wait(kLimit));
    wait_a_moment();
    device_.start();
  }

  void inject(std::uint64_t kind, std::uint64_t port) {
    raw::Port client(admin_path());  // all other ports may be taken
    ASSERT_EQ(client.write(GBA_DEBUG_PORT, port, 8, GBA_REGION_DEBUG), 0);
    client.write(GBA_DEBUG_INJECT, kind, 8, GBA_REGION_DEBUG);  // the reply is lost if this port is pulled out too
  }

  [[nodiscard]] int count(const std::string& text) const { return count_of(job_->output(), text); }

  [[nodiscard]] std::string admin_path() const { return dir_.file("admin.sock"); }

  TempDir dir_;
  FakeDevice device_{{"--debug-region", "--admin-socket", admin_path(), "--ports", std::to_string(GetParam())}};
  int pes_ = 0;
  std::unique_ptr<Process> job_;
  int times_in_use_ = 0;
};

TEST_P(Recovery, TheDeviceIsInUseAgainAfterEachLoss) {
  using Event = std::pair<const char*, std::function<void()>>;
  const std::array<Event, 5> events{{{"killed", [this] { kill_device(); }},
                                     {"reset", [this] { reset_device(); }},
                                     {"unplugged", [this] { unplug_device(); }},
                                     {"restarted", [this] { restart_device(); }},
                                     {"one connection cut", [this] { cut_one_connection(); }}}};
  constexpr int kEventsPerJob = 10;
  for (int job = 0; job < repeats(20, 500) / kEventsPerJob; ++job) {
    start_job(GetParam() == kShared ? 3 + job % 6 : 2 + job % 4);
    for (int i = 0; i < kEventsPerJob && !HasFatalFailure(); ++i) {
      const auto& [name, happen] = events[static_cast<std::size_t>(i) % events.size()];
      SCOPED_TRACE(name);
      wait_a_moment();
      happen();
      await_use();
    }
    ASSERT_FALSE(HasFatalFailure());
    end_job();
  }
}

INSTANTIATE_TEST_SUITE_P(Ports, Recovery, Values(kShared, 708));

}  // namespace
