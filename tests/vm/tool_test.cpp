// SPDX-License-Identifier: Apache-2.0
// The gba command and the udev rules on a real kernel, as used by an administrator and by users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/json.hpp"
#include "tests/vm/kernels.hpp"
#include "tests/vm/machine.hpp"
#include "tests/vm/scripted_guest.hpp"

namespace {

using test_support::Json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;
using Names = std::set<std::string>;
using vm::Said;

class Tool : public testing::TestWithParam<std::string> {
 protected:
  /// One boot of each kernel serves all tests.
  const Said& said(const std::string& name) {
    static std::map<std::string, vm::Transcript> runs;
    if (runs.find(GetParam()) == runs.end()) {
      runs[GetParam()] = vm::boot(GetParam(), "make-tool-initramfs.sh",
                                  {vm::cache_folder(), GetParam(), test_support::program("gba"), GBA_UDEV_DIR},
                                  test_support::Seconds{800});
    }
    vm::Transcript& run = runs[GetParam()];
    const Said& found = run.commands[name];
    EXPECT_NE(found.code, -1) << name << " has not ended in:\n" << run.console;
    return found;
  }
  Json json(const std::string& name, int code) {
    const Said& found = said(name);
    EXPECT_EQ(found.code, code) << name << ": " << found.text;
    auto parsed = Json::parse_or_null(found.text);
    EXPECT_TRUE(parsed.is_object()) << name << ": " << found.text;
    return parsed.is_object() ? parsed : Json::object();
  }
  /// One result of gba check or gba selftest.
  Json finding(const std::string& name, int code, const std::string& check) {
    const Json all = json(name, code);
    for (const auto& entry : all.value("checks", Json::array())) {
      if (entry.at("check") == check) {
        return entry;
      }
    }
    ADD_FAILURE() << "no " << check << " in " << all;
    return Json::object();
  }
  Names problems(const std::string& name, int code) {
    Names found;
    const Json all = json(name, code);
    for (const auto& entry : all.value("checks", Json::array())) {
      if (entry.at("verdict") == "problem") {
        found.insert(entry.at("check"));
      }
    }
    return found;
  }
  static bool has_iommufd() { return vm::backend() == "vfio-cdev"; }
  /// Expects gba check, info, groups and selftest to succeed for this user.
  void expect_at_work(const std::string& user) {
    EXPECT_EQ(problems("check_" + user, 0), Names{});
    EXPECT_EQ(json("info_" + user, 0).value("backend", ""), vm::backend());
    EXPECT_EQ(json("info_" + user, 0).value("flags", ""), "dma");
    EXPECT_EQ(json("groups_" + user, 0).at("groups").size(), 0U);
    EXPECT_EQ(json("selftest_" + user, 0).at("ok"), true);
  }
  /// Expects the nodes of both functions to be as the rules set them.
  void expect_nodes(const std::string& name) {
    const std::string& text = said(name).text;
    EXPECT_THAT(text, testing::ContainsRegex("/dev/vfio/[0-9]+ gba 660\n/dev/vfio/[0-9]+ gba 660\n"));
    const std::string node = has_iommufd() ? "/dev/vfio/devices/vfio[01]" : "/dev/vfio/[0-9]+";
    EXPECT_THAT(text, testing::ContainsRegex("/dev/gba0 " + node + "\n/dev/gba1 " + node + "\n$"));
    if (has_iommufd()) {
      EXPECT_THAT(text, HasSubstr("/dev/iommu gba 660\n"));
      EXPECT_THAT(text, HasSubstr("/dev/vfio/devices/vfio0 gba 660\n/dev/vfio/devices/vfio1 gba 660\n"));
    }
  }
};

TEST_P(Tool, ListsFunctionsWithoutADriver) {
  const Json list = json("list_at_first", 0).at("plugged_in");
  ASSERT_EQ(list.size(), 2U);
  for (const auto& function : list) {
    EXPECT_EQ(function.at("driver"), nullptr);
    EXPECT_EQ(function.at("device_node"), nullptr);
  }
}

TEST_P(Tool, ReportsFunctionsWithoutADriver) {
  EXPECT_THAT(problems("check_at_first", 1), IsSupersetOf({"driver", "device node"}));
  const std::string fix = finding("check_at_first", 1, "driver").value("fix", "");
  EXPECT_THAT(fix, AllOf(HasSubstr("driver_override"), HasSubstr("drivers_probe")));
  if (!has_iommufd()) {  // else VFIO is built in
    EXPECT_THAT(finding("check_at_first", 1, "vfio-pci").value("fix", ""), HasSubstr("modprobe vfio-pci"));
  }
}

TEST_P(Tool, WorksForRootAfterTheCommandsThatItGave) {
  EXPECT_EQ(said("fix_at_first").code, 0) << said("fix_at_first").text;
  expect_at_work("root");
}

TEST_P(Tool, ReportsMissingPermissionsWithoutTheRules) {
  EXPECT_THAT(said("nodes_by_hand").text, Not(HasSubstr("gba")));
  EXPECT_EQ(problems("check_without_rule", 1),
            has_iommufd() ? (Names{"device node", "memory node"}) : Names{"device node"});
  const Json node = finding("check_without_rule", 1, "device node");
  EXPECT_THAT(node.value("found", ""), AllOf(HasSubstr("user worker has no permission"), HasSubstr("root:root 0600")));
  EXPECT_THAT(node.value("fix", ""), HasSubstr("70-gba.rules"));
}

TEST_P(Tool, FixesPermissionsByTheRules) {
  EXPECT_EQ(said("fix_without_rule").code, 0) << said("fix_without_rule").text;
  expect_nodes("nodes_after_fix");
}

TEST_P(Tool, NeedsNothingButTheRulesAtTheStart) {
  EXPECT_THAT(said("nodes_at_start").text, Not(HasSubstr("/dev/vfio/")));
  expect_nodes("nodes_by_rules");
}

TEST_P(Tool, WorksForAUserInTheGroup) {
  expect_at_work("member");
  const Json list = json("list_member", 0).at("plugged_in");
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].at("name"), "/dev/gba0");
  EXPECT_EQ(list[1].at("name"), "/dev/gba1");
}

TEST_P(Tool, KnowsAFunctionByItsName) {
  EXPECT_THAT(finding("check_second", 0, "device node").value("found", ""), HasSubstr("also /dev/gba1"));
}

TEST_P(Tool, ReportsMissingPermissionsOfOtherUsers) {
  EXPECT_THAT(problems("check_stranger", 1), testing::Contains("device node"));
  const Json node = finding("check_stranger", 1, "device node");
  EXPECT_THAT(node.value("found", ""), AllOf(HasSubstr("user stranger has no permission"), HasSubstr("root:gba 0660")));
  EXPECT_EQ(node.value("fix", ""), "usermod -a -G gba stranger (as root), then log in again");
  EXPECT_EQ(json("info_stranger", 3).at("error").at("name"), "EACCES");
}

TEST_P(Tool, WorksWith64KibOfLockedMemory) {
  const Json memlock = finding("check_member", 0, "memlock");  // a user with that limit
  EXPECT_EQ(memlock.value("verdict", ""), "ok");
  EXPECT_THAT(memlock.value("found", ""), HasSubstr("limit 64 KiB, needed 12 KiB"));
}

// A page for the flags can be pinned, but not also locked.
TEST_P(Tool, WorksWithAPageOfLockedMemoryAndSuggestsMore) {
  const Json memlock = finding("check_4", 0, "memlock");
  EXPECT_EQ(memlock.value("verdict", ""), "note");
  EXPECT_THAT(memlock.value("fix", ""), HasSubstr("ulimit -l"));
  EXPECT_EQ(json("info_4", 0).value("flags", ""), "dma");
  EXPECT_EQ(json("selftest_4", 0).at("ok"), true);
}

TEST_P(Tool, UsesTheDevicesMemoryWithoutLockedMemory) {
  EXPECT_EQ(finding("check_0", 0, "memlock").value("verdict", ""), "note");
  EXPECT_THAT(finding("check_0", 0, "opens").value("found", ""), HasSubstr("in the device's memory"));
  EXPECT_EQ(json("info_0", 0).value("flags", ""), "bar");
  EXPECT_EQ(json("selftest_0", 0).at("ok"), true);
}

TEST_P(Tool, ReportsTooLittleLockedMemoryIfFlagsMustBeInIt) {
  EXPECT_THAT(problems("check_dma", 1), testing::Contains("memlock"));
  const Json memlock = finding("check_dma", 1, "memlock");
  EXPECT_THAT(memlock.value("found", ""), HasSubstr("limit 0 bytes"));
  EXPECT_THAT(memlock.value("fix", ""), HasSubstr("ulimit -l"));
  EXPECT_THAT(json("info_dma", 3).at("error").value("text", ""), HasSubstr("RLIMIT_MEMLOCK"));
}

TEST_P(Tool, ReportsThatAnotherProcessHasTheFunction) {
  EXPECT_EQ(problems("check_in_use", 0), Names{});
  EXPECT_THAT(finding("check_in_use", 0, "opens").value("found", ""), HasSubstr("it is in use"));
}

INSTANTIATE_TEST_SUITE_P(All, Tool, testing::ValuesIn(vm::kernels()),
                         [](const auto& kernel) { return vm::test_name(kernel.param); });

}  // namespace
