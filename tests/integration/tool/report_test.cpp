// SPDX-License-Identifier: Apache-2.0
// gba report: all about a device and its machine in one file, without secrets, and also if there is no device.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <map>

#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/integration/tool/run_gba.hpp"

namespace tool_test {
namespace {

using testing::HasSubstr;
using testing::Not;

using Report = driver_test::BarrierTest;

std::map<std::string, std::string> sections_of(const Json& report) {
  std::map<std::string, std::string> all;
  for (const auto& section : report.at("sections")) {
    all[section.at("title")] = section.at("text");
  }
  return all;
}

TEST_F(Report, HasTheDeviceAndTheMachine) {
  const auto device = open();
  const auto handle = alloc(device.get(), 3);
  auto all = sections_of(gba_json({"report", path()}));
  EXPECT_THAT(all["versions"], testing::ContainsRegex("^libgba [0-9.]+\nkernel [^\n]+\nsystem [^\n]+\n$"));
  EXPECT_THAT(all["limits"], HasSubstr("locked memory "));
  EXPECT_THAT(all["IOMMU and VFIO"], HasSubstr("vfio-pci "));
  EXPECT_THAT(all["check"], HasSubstr("opens"));
  EXPECT_THAT(all["device"], HasSubstr("of up to 708 members"));
  EXPECT_THAT(all["groups"], HasSubstr("0/3"));
  EXPECT_THAT(all["registers: device"], HasSubstr("FAULT_INFO"));
  EXPECT_THAT(all["registers: group " + std::to_string(handle.group)], HasSubstr("MEMBER_COUNT"));
  EXPECT_THAT(all["registers: device"], Not(HasSubstr("CMD_RESULT"))) << "the key of a group could be in it";
}

TEST_F(Report, ShowsVariablesButNoSecrets) {
  const auto outcome = gba({"report", path()}, {"SHMEM_INFO=1", "SHMEM_UID_SECRET=hunter2", "UCX_TLS=tcp",
                                                "GBA_VF_TOKEN=83f7c5c5-9f4e-4a3a-8d1e-3f9d1c1e2a10",
                                                "SHMEM_SOME_PASSWORD=hunter2", "OTHER_VARIABLE=hunter3"});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("\nSHMEM_INFO=1\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nUCX_TLS=tcp\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nSHMEM_UID_SECRET is set (not shown)\n"));
  EXPECT_THAT(outcome.output, HasSubstr("\nGBA_VF_TOKEN is set (not shown)\n"));
  EXPECT_THAT(outcome.output, Not(HasSubstr("hunter")));
  EXPECT_THAT(outcome.output, Not(HasSubstr("83f7c5c5")));
}

TEST_F(Report, IsAFileOfThisUserOnly) {
  const std::string file = dir().file("report.txt");
  const auto outcome = gba({"report", path(), "--output", file});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr(file + " is written; "));
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, testing::StartsWith("gba report of 20"));
  EXPECT_THAT(text, HasSubstr("\n==== registers: device ====\n"));
  EXPECT_THAT(text, HasSubstr("\n==== what could not be read ====\n"));
  const auto again = gba({"report", path(), "--output", file});
  EXPECT_EQ(again.exit.code, 5);
  EXPECT_THAT(again.output, HasSubstr("File exists; remove it, or choose another name"));
}

TEST(ReportWithoutADevice, SaysWhatItCouldNotRead) {
  const Json report = gba_json({"report", "/no/such"});
  auto all = sections_of(report);
  EXPECT_THAT(all["check"], HasSubstr("there is no /no/such"));
  EXPECT_THAT(all["limits"], HasSubstr("open files"));
  EXPECT_EQ(all.count("device"), 0U);
  EXPECT_THAT(report.at("not_read").get<std::vector<std::string>>(), testing::Contains("device: there is no /no/such"));
}

class ReportOfABusyDevice : public driver_test::BarrierTest {
 protected:
  ReportOfABusyDevice() : BarrierTest({"--ports", "1"}) {}
};

TEST_F(ReportOfABusyDevice, AsksTheProcessThatHasIt) {
  const auto device = open();
  const Json report = gba_json({"report", path()});
  EXPECT_THAT(sections_of(report)["device"], HasSubstr("as seen by process"));
  EXPECT_THAT(report.at("not_read").dump(), HasSubstr("registers: gba: cannot open"));
}

}  // namespace
}  // namespace tool_test
