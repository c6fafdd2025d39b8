// SPDX-License-Identifier: Apache-2.0
// oshrun --gba fake, with a copy of oshrun next to a device that the test makes.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/pe.hpp"
#include "tests/support/text.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

constexpr Seconds kLimit{120};

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

class OshrunDevice : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::copy_file(program("oshrun"), oshrun()); }

  [[nodiscard]] std::string oshrun() const { return dir_.file("oshrun"); }
  /// The device is a shell script.
  void make_device(const std::string& script) const {
    const std::string file = dir_.file("gba-fake-device");
    std::ofstream(file) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  /// The device's processes: no other command line has this folder.
  [[nodiscard]] std::vector<pid_t> devices() const { return processes_matching(dir_.file("gba-fake-device")); }
  [[nodiscard]] bool no_device_is_left() const { return none_matching(dir_.file("gba-fake-device")); }

  TempDir dir_;
};

// Waits without child processes, which would have its command line until they run another program.
constexpr const char* kGoodDevice =
    "mkfifo \"$0.fifo\"; exec 3<>\"$0.fifo\"; echo ready; while :; do read -r line <&3; done";

TEST_F(OshrunDevice, IsStartedForTheJobAndEndedAfterIt) {
  make_device("echo \"$@\" > " + dir_.file("arguments") + "; " + kGoodDevice);
  const auto outcome = run({oshrun(), "-n", "2", "--gba", "fake", "sh", "-c", "echo \"$GBA_DEVICE\""}, {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  const auto address = first_match(outcome.output, "vfio-user:(@gba-[0-9a-f]{32})\n");
  ASSERT_FALSE(address.empty()) << outcome.output;
  EXPECT_EQ(contents(dir_.file("arguments")), "--socket " + address[1] + " --group-limit 32\n");
  EXPECT_TRUE(no_device_is_left());
}

TEST_F(OshrunDevice, IsKilledIfItDoesNotEndInTime) {
  make_device(std::string("trap '' TERM; ") + kGoodDevice);
  EXPECT_EQ(run({oshrun(), "--gba", "fake", "true"}, {}, kLimit).exit.code, 0);
  EXPECT_TRUE(no_device_is_left());
}

TEST_F(OshrunDevice, EndsTheJobIfItCannotStart) {
  make_device("echo broken >&2; exit 3");
  const auto outcome = run({oshrun(), "-n", "2", "--gba", "fake", "echo", "ran"}, {}, kLimit);
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("broken\n"));
  EXPECT_THAT(outcome.output,
              HasSubstr("oshrun: the fake device (" + dir_.file("gba-fake-device") + ") ended before it was ready"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("ran")));
}

TEST_F(OshrunDevice, IsReportedIfMissing) {
  const auto outcome = run({oshrun(), "--gba", "fake", "true"}, {"PATH=/usr/bin:/bin"}, kLimit);
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output,
              HasSubstr("cannot run gba-fake-device: no such program in PATH, nor in the folder of oshrun"));
}

TEST_F(OshrunDevice, MayDieWithoutTheJob) {
  make_device(kGoodDevice);
  const std::string end = dir_.file("end");
  Process job({oshrun(), "-n", "2", "--gba", "fake", "sh", "-c",
               "echo up; until [ -e " + end + " ]; do sleep 0.05; done; echo over"});
  ASSERT_TRUE(job.wait_for_output("up", kLimit));
  ASSERT_EQ(devices().size(), 1U);
  ::kill(devices().front(), SIGKILL);
  EXPECT_TRUE(job.wait_for_output("was killed by signal 9 (Killed); the job goes on with software barriers\n", kLimit));
  std::ofstream(end).flush();
  EXPECT_EQ(job.wait(kLimit)->code, 0);
  EXPECT_THAT(job.output(), HasSubstr("over\n"));
}

TEST_F(OshrunDevice, EndsWithAKilledLauncher) {
  make_device(kGoodDevice);
  Process job({oshrun(), "-n", "2", "--gba", "fake", "sh", "-c", "echo up; exec sleep 60"});
  ASSERT_TRUE(job.wait_for_output("up", kLimit));
  job.signal(SIGKILL);
  job.wait(kLimit);
  EXPECT_TRUE(no_device_is_left());
}

TEST_F(OshrunDevice, SurvivesCtrlCUntilThePesHaveEnded) {
  make_device("trap 'exit 0' TERM; trap 'echo interrupted > " + dir_.file("mark") + "' INT; " + kGoodDevice);
  Process job({oshrun(), "--gba", "fake", "sh", "-c", "echo up; exec sleep 60"});
  ASSERT_TRUE(job.wait_for_output("up", kLimit));
  ::kill(-job.pid(), SIGINT);  // as a terminal does
  EXPECT_EQ(job.wait(kLimit)->code, 128 + SIGINT);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("mark")));
  EXPECT_TRUE(no_device_is_left());
}

TEST(OshrunRealDevice, ServesThePes) {
  const auto outcome = run({program("oshrun"), "-n", "2", "--gba", "fake", "sh", "-c",
                            "grep -c \"${GBA_DEVICE#vfio-user:}\" /proc/net/unix"});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "1\n1\n");
}

}  // namespace
