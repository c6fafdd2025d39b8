// SPDX-License-Identifier: Apache-2.0
// The device of the packaged service, found by its default path: by the command gba, and by libshmem.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/json.hpp"
#include "tests/support/service.hpp"

namespace {

using test_support::Outcome;
using testing::HasSubstr;

class Service : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome possible = test_support::run_with_service({"true"});
    if (possible.exit.code == 77) {
      GTEST_SKIP() << possible.output;
    }
    ASSERT_TRUE(possible.exit.clean()) << possible.output;
  }

  static Outcome run(std::vector<std::string> command, const std::vector<std::string>& environment = {}) {
    command.insert(command.begin(), {"env", "-u", "GBA_DEVICE"});
    return test_support::run_with_service(command, environment);
  }

  static std::string found(const Outcome& outcome, const std::string& check) {
    const auto report = test_support::Json::parse(outcome.output);
    for (const auto& finding : report.at("checks")) {
      if (finding.at("check") == check) {
        return finding.at("found");
      }
    }
    return "";
  }
};

TEST_F(Service, IsFoundByCheckWhichSaysWhatItIs) {
  const Outcome outcome = run({test_support::program("gba"), "check", "--json"});
  ASSERT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_EQ(test_support::Json::parse(outcome.output).at("device"), "/dev/gba0");
  EXPECT_EQ(found(outcome, "kind"), "a process, such as gba-fake-device, behind the socket /run/gba-fake/gba0.sock");
  EXPECT_THAT(found(outcome, "opens"), HasSubstr("32 groups of up to 708 members"));
}

TEST_F(Service, IsOpenedByLibgba) {
  const Outcome outcome = run({test_support::program("gba"), "selftest"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST_F(Service, ThatDoesNotRunIsNoDevice) {
  const std::vector<std::string> not_started{"GBA_TEST_NOT_STARTED=1"};
  const Outcome outcome = run({test_support::program("gba"), "check", "/dev/gba0"}, not_started);
  EXPECT_FALSE(outcome.exit.clean());
  EXPECT_THAT(outcome.output, HasSubstr("/dev/gba0 leads to /run/gba-fake/gba0.sock, which does not exist"));
  EXPECT_THAT(outcome.output, HasSubstr("systemctl start gba-fake-device"));
  const Outcome job = run({test_support::program("oshrun"), "-n", "2", "true"}, not_started);
  EXPECT_TRUE(job.exit.clean()) << job.output;
}

/// The lines that the design document shows to a user of OpenSHMEM, with fewer PEs. With SHMEM_GBA=require the job does
/// not start without the device.
TEST_F(Service, IsUsedByLibshmemWithTheLinesOfTheDocument) {
  const test_support::TempDir folder;
  std::filesystem::create_symlink(test_support::test_program("barrier_pes"), folder.file("your_shmem_app"));
  const std::string bin = std::filesystem::path(test_support::program("oshrun")).parent_path();
  const Outcome outcome = run({"sh", "-ec",
                               "cd " + folder.file("") + "\nPATH=" + bin +
                                   ":$PATH\n"
                                   "export OMPI_MCA_scoll_gba_priority=100\n"
                                   "export OMPI_MCA_scoll_gba_device_path=/dev/gba0\n"
                                   "oshrun -np 2 ./your_shmem_app\n"},
                              {"SHMEM_GBA=require"});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("by software 0\n"));
}

}  // namespace
