// SPDX-License-Identifier: Apache-2.0
// gba info, selftest, bench, limit and reset on a gba-fake-device.
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>

#include "gba/gba.h"
#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/job.hpp"

namespace tool_test {
namespace {

using test_support::FakeDevice;
using testing::HasSubstr;

/// The verdict of each check.
std::map<std::string, std::string> verdicts(const Json& result) {
  std::map<std::string, std::string> all;
  for (const auto& entry : result.at("checks")) {
    all[entry.at("check")] = entry.at("verdict");
  }
  return all;
}

TEST(Info, DescribesTheDeviceAndItsCounters) {
  const FakeDevice device;
  const Json info = gba_json({"info", device.path()});
  EXPECT_EQ(info.at("device"), device.path());
  EXPECT_EQ(info.at("backend"), "vfio-user");
  EXPECT_EQ(info.at("groups"), 32);
  EXPECT_EQ(info.at("members"), 708);
  EXPECT_EQ(info.at("group_limit"), 8);
  EXPECT_EQ(info.at("groups_held"), 0);
  EXPECT_EQ(info.at("port"), 0);
  EXPECT_EQ(info.at("flags"), "dma");
  EXPECT_EQ(info.at("condition"), "ok");
  EXPECT_THAT(info.at("features").get<std::vector<std::string>>(), testing::Contains("notify"));
  EXPECT_EQ(info.at("counters").at("arrivals"), 0);
  EXPECT_EQ(info.at("counters").size(), 10U);
  EXPECT_THAT(gba({"info"}, {"GBA_DEVICE=" + device.path()}).output,
              HasSubstr("groups        32, of up to 708 members"));
}

TEST(Info, SaysWhyItCannotOpenADevice) {
  const Json failure = gba_json({"info", "/no/such"}, {}, 3);
  EXPECT_EQ(failure.at("error").at("name"), "ENODEV");
  EXPECT_THAT(failure.at("error").at("text").get<std::string>(), HasSubstr("gba: cannot open /no/such"));
  const auto text = gba({"info", "/no/such"});
  EXPECT_EQ(text.exit.code, 3);
  EXPECT_THAT(text.output, testing::StartsWith("gba: cannot open /no/such"));
}

TEST(SelfTest, PassesOnAHealthyDeviceWithTwoPorts) {
  FakeDevice device;
  const Json result = gba_json({"selftest", device.path(), "--barriers", "200"});
  EXPECT_EQ(result.at("ok"), true) << result;
  const auto all = verdicts(result);
  EXPECT_EQ(all.size(), 18U) << result;
  for (const auto& [name, verdict] : all) {
    EXPECT_EQ(verdict, "ok") << name << ": " << result;
  }
  EXPECT_EQ(all.count("two members"), 1U);
  // It leaves nothing behind.
  EXPECT_EQ(gba_json({"groups", device.path(), "--interval", "0.01"}).at("groups").size(), 0U);
  EXPECT_TRUE(test_support::processes_matching(std::string("selftest") + '\0' + device.path()).empty());
}

TEST(SelfTest, SkipsTheSecondPortOnADeviceWithOne) {
  const FakeDevice device({"--ports", "1"});
  const Json result = gba_json({"selftest", device.path(), "--barriers", "10"});
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_EQ(verdicts(result).at("two ports"), "note");
  EXPECT_EQ(verdicts(result).at("error release"), "ok");
}

TEST(SelfTest, RunsOnASwitchDevice) {
  const FakeDevice device({"--profile", "switch"});
  const Json result = gba_json({"selftest", device.path(), "--barriers", "10"});
  EXPECT_EQ(result.at("ok"), true) << result;
}

TEST(SelfTest, FindsADeviceThatFails) {
  const FakeDevice device({"--fault", "dma-fault:after=20"});
  const Json result = gba_json({"selftest", device.path(), "--barriers", "50"}, {}, 1);
  EXPECT_EQ(result.at("ok"), false);
  EXPECT_EQ(verdicts(result).at("barriers"), "problem") << result;
  const auto text = gba({"selftest", device.path(), "--barriers", "50"});
  EXPECT_EQ(text.exit.code, 0) << "the fault strikes once: " << text.output;
  EXPECT_THAT(text.output, testing::EndsWith(": passed\n"));
}

TEST(SelfTest, FindsInterruptsThatAreLost) {
  const FakeDevice device({"--fault", "drop-interrupt:group=0,count=always"});
  const Json result = gba_json({"selftest", device.path(), "--barriers", "10"}, {}, 1);
  EXPECT_EQ(verdicts(result).at("sleep"), "problem") << result;
}

TEST(SelfTest, SaysWhyItCannotOpenADevice) {
  const Json result = gba_json({"selftest", "@no-such-gba-socket"}, {}, 1);
  EXPECT_EQ(verdicts(result), (std::map<std::string, std::string>{{"open", "problem"}}));
}

TEST(Bench, GivesPercentilesInOrder) {
  const FakeDevice device;
  const Json result = gba_json({"bench", device.path(), "--rounds", "2000"});
  EXPECT_EQ(result.at("rounds"), 2000);
  EXPECT_THAT(result.at("measured").get<std::string>(), HasSubstr("the release seen in the flag"));
  double last = 1;
  for (const auto* name : {"min", "p50", "p90", "p99", "p99.9", "max"}) {
    EXPECT_GE(result.at("ns").at(name).get<double>(), last) << result;
    last = result.at("ns").at(name).get<double>();
  }
  EXPECT_GE(gba_json({"info", device.path()}).at("counters").at("releases"), 3000) << "the warm-up counts too";
}

TEST(Bench, ContinuesAfterLostReleases) {
  const FakeDevice device({"--fault", "drop-release:count=3,after=1500"});
  const Json result = gba_json({"bench", device.path(), "--rounds", "1000"});
  EXPECT_GE(result.at("longer_than_a_spin"), 1) << result;
}

class Reset : public testing::Test {
 protected:
  [[nodiscard]] std::string admin() const { return "vfio-user:" + folder_.file("admin.sock"); }

 private:
  test_support::TempDir folder_;

 protected:
  FakeDevice device{{"--admin-socket", folder_.file("admin.sock")}};
};

TEST_F(Reset, EndsTheBarriersOfAllPorts) {
  gba_device* opened = nullptr;
  ASSERT_EQ(gba_open(device.path().c_str(), &opened), 0) << gba_error_text();
  gba_group_handle handle{};
  gba_group* group = nullptr;
  ASSERT_EQ(gba_group_alloc(opened, 2, 0, &handle), 0) << gba_error_text();
  ASSERT_EQ(gba_group_join(opened, &handle, 0, &group), 0) << gba_error_text();
  ASSERT_EQ(gba_group_enable(opened, &handle), 0) << gba_error_text();
  gba_group_arrive(group, 1);

  const Json refused = gba_json({"reset", admin()}, {}, 2);
  EXPECT_EQ(refused.at("error").at("name"), "ECANCELED");
  EXPECT_EQ(gba_group_test(group, 1), -EAGAIN) << "it asks for --yes first";

  EXPECT_EQ(gba_json({"reset", admin(), "--yes"}).at("reset"), true);
  EXPECT_EQ(gba_group_wait(group, 1, 10'000'000'000), -ECONNRESET) << gba_error_text();
  const Json groups = gba_json({"groups", device.path(), "--interval", "0.01"}).at("groups");
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].at("state"), "error");
  EXPECT_EQ(groups[0].at("error").at("code"), "RESET");
  EXPECT_EQ(gba_group_leave(group), 0);
  gba_close(opened);
}

using Limit = Reset;

TEST_F(Limit, IsSetThroughThePrivilegedPortForAllOthers) {
  EXPECT_EQ(gba_json({"limit", device.path()}).at("group_limit"), 8);
  EXPECT_EQ(gba_json({"limit", admin(), "--groups", "2"}).at("group_limit"), 2);
  gba_device* opened = nullptr;
  ASSERT_EQ(gba_open(device.path().c_str(), &opened), 0) << gba_error_text();
  gba_group_handle handle{};
  ASSERT_EQ(gba_group_alloc(opened, 1, 0, &handle), 0) << gba_error_text();
  ASSERT_EQ(gba_group_alloc(opened, 1, 0, &handle), 0) << gba_error_text();
  EXPECT_EQ(gba_group_alloc(opened, 1, 0, &handle), -EDQUOT);
  EXPECT_THAT(gba_error_text(),
              HasSubstr("as many groups as it may have; gba limit raises that, through the privileged "
                        "port (2 of 2)"));
  EXPECT_EQ(gba_json({"limit", admin(), "--groups", "3"}).at("group_limit"), 3);
  EXPECT_EQ(gba_group_alloc(opened, 1, 0, &handle), 0) << gba_error_text();
  gba_close(opened);
  EXPECT_THAT(gba({"limit", device.path()}).output, HasSubstr("a port may have 3 of the 32 groups"));
  EXPECT_THAT(gba({"info", device.path()}).output, HasSubstr("a port may have 3 of them; this port has 0"));
}

TEST_F(Limit, IsRefusedToAnOrdinaryPortAndBeyondTheDevicesGroups) {
  const Json refused = gba_json({"limit", device.path(), "--groups", "32"}, {}, 4);
  EXPECT_EQ(refused.at("error").at("name"), "EPERM");
  EXPECT_THAT(refused.at("error").at("text").get<std::string>(), HasSubstr("--admin-socket"));
  EXPECT_EQ(gba_json({"limit", admin(), "--groups", "33"}, {}, 2).at("error").at("name"), "EINVAL");
  EXPECT_EQ(gba_json({"limit", device.path()}).at("group_limit"), 8);
}

// A job has the function: its process answers.
TEST_F(Limit, IsShownByTheProcessThatHasThePort) {
  const FakeDevice one({"--ports", "1", "--group-limit", "5"});
  gba_device* opened = nullptr;
  ASSERT_EQ(gba_open(one.path().c_str(), &opened), 0) << gba_error_text();
  gba_group_handle handle{};
  ASSERT_EQ(gba_group_alloc(opened, 1, 0, &handle), 0) << gba_error_text();
  const Json info = gba_json({"info", one.path()});
  EXPECT_EQ(info.at("seen_by"), ::getpid());
  EXPECT_EQ(info.at("group_limit"), 5);
  EXPECT_EQ(info.at("groups_held"), 1);
  gba_close(opened);
}

TEST_F(Reset, IsRefusedToAnOrdinaryPort) {
  const Json refused = gba_json({"reset", device.path(), "--yes"}, {}, 4);
  EXPECT_EQ(refused.at("error").at("name"), "EPERM");
  EXPECT_THAT(refused.at("error").at("text").get<std::string>(), HasSubstr("--admin-socket"));
}

TEST(FatalError, IsReportedByInfoAndCheckAndClearedByReset) {
  const test_support::TempDir folder;
  const std::string admin = folder.file("admin.sock");
  const FakeDevice device({"--admin-socket", admin, "--fault", "fatal"});
  const auto says_what_fixes_it = testing::AllOf(HasSubstr("fatal error (FATAL)"), HasSubstr("gba reset --yes"));

  const std::string condition = gba_json({"info", device.path()}).at("condition");
  EXPECT_THAT(condition, says_what_fixes_it);
  const Json check = gba_json({"check", device.path()}, {}, 1);
  EXPECT_EQ(verdicts(check).at("opens"), "problem");
  const Json& opens = check.at("checks").back();
  EXPECT_THAT(opens.at("found").get<std::string>(), says_what_fixes_it);
  EXPECT_THAT(opens.at("fix").get<std::string>(), HasSubstr("gba reset --yes"));
  EXPECT_EQ(gba_json({"groups", device.path()}, {}, 3).at("error").at("name"), "EIO");

  EXPECT_EQ(gba_json({"reset", device.path(), "--yes"}, {}, 4).at("error").at("name"), "EPERM");
  EXPECT_EQ(gba_json({"reset", admin, "--yes"}).at("reset"), true);
  EXPECT_EQ(gba_json({"info", device.path()}).at("condition"), "ok");
  EXPECT_EQ(gba_json({"check", device.path()}).at("ok"), true);
  const Json tested = gba_json({"selftest", device.path(), "--barriers", "20"});
  EXPECT_EQ(tested.at("ok"), true) << tested;
}

TEST(LinkDown, IsNamedByInfoAndCheck) {
  const FakeDevice device({"--fault", "link-down:port=0"});
  EXPECT_THAT(gba_json({"info", device.path()}).at("condition").get<std::string>(),
              HasSubstr("the link of this port, 0, is down"));
  EXPECT_EQ(verdicts(gba_json({"check", device.path()}, {}, 1)).at("opens"), "problem");
}

}  // namespace
}  // namespace tool_test
