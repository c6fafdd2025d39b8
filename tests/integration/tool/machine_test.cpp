// SPDX-License-Identifier: Apache-2.0
// gba list and gba check on imitated machines, which are folders.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/integration/tool/fake_machine.hpp"
#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/job.hpp"

namespace tool_test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Machine : public testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> environment(const std::vector<std::string>& more = {}) const {
    auto all = machine.environment();
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] Json list(const std::vector<std::string>& more = {}) const {
    return gba_json({"list"}, environment(more));
  }
  /// The result of gba check, with which the exit code must agree.
  Json check(std::vector<std::string> arguments = {}, const std::vector<std::string>& more = {}) {
    arguments.insert(arguments.begin(), "check");
    arguments.emplace_back("--json");
    const auto outcome = gba(arguments, environment(more));
    auto json = Json::parse_or_null(outcome.output);
    EXPECT_TRUE(json.is_object()) << outcome.output;
    EXPECT_EQ(outcome.exit.code, json.value("ok", false) ? 0 : 1) << outcome.output;
    return json;
  }
  static Json found(const Json& result, const std::string& name) {
    for (const auto& entry : result.at("checks")) {
      if (entry.at("check") == name) {
        return entry;
      }
    }
    ADD_FAILURE() << "no check " << name << " in " << result;
    return {};
  }
  /// Expects check `name` to be the only problem; returns the command that fixes it.
  std::string only_problem(const std::string& name, const std::string& text) {
    const Json result = check();
    EXPECT_EQ(result.at("ok"), false);
    for (const auto& entry : result.at("checks")) {
      EXPECT_EQ(entry.at("verdict") == "problem", entry.at("check") == name) << entry;
    }
    const Json entry = found(result, name);
    EXPECT_THAT(entry.value("found", ""), HasSubstr(text));
    return entry.value("fix", "");
  }

  FakeMachine machine;
};

TEST_F(Machine, WithoutAGbaListsNone) {
  machine.plug_in({.vendor = "0x8086", .device = "0x1234"});
  EXPECT_EQ(list(), Json::parse(R"({"schema": 1, "plugged_in": [], "GBA_DEVICE": null})"));
  const auto outcome = gba({"list"}, environment());
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, "no GBA is plugged in\n");
}

TEST_F(Machine, ListsWhatIsPluggedInAndWhatTheVariableNames) {
  machine.whole();
  machine.plug_in({.address = "0001:02:1f.7", .device = "0x0b00", .driver = "", .group = ""});
  const Json all = list({"GBA_DEVICE=vfio-user:/x"});
  EXPECT_EQ(all.at("GBA_DEVICE"), "vfio-user:/x");
  ASSERT_EQ(all.at("plugged_in").size(), 2U) << all;
  EXPECT_EQ(all.at("plugged_in")[0],
            Json::parse(R"({"address": "0000:3b:00.0", "pci_id": "1eaf:0b01", "driver": "vfio-pci",
                            "iommu_group": "12", "device_node": ")" +
                        machine.path("dev/vfio/12") + R"(", "name": null, "numa_node": 1})"));
  EXPECT_EQ(all.at("plugged_in")[1].at("address"), "0001:02:1f.7");
  EXPECT_EQ(all.at("plugged_in")[1].at("driver"), nullptr);
  EXPECT_EQ(all.at("plugged_in")[1].at("device_node"), nullptr);
  EXPECT_THAT(gba({"list"}, environment()).output, HasSubstr("0000:3b:00.0  1eaf:0b01  vfio-pci  12"));
}

TEST_F(Machine, ListsTheNameThatUdevGave) {
  machine.whole();
  machine.with_iommufd();
  machine.link("dev/gba0", "vfio/devices/vfio0");
  const Json entry = list().at("plugged_in").at(0);
  EXPECT_EQ(entry.at("device_node"), machine.path("dev/vfio/devices/vfio0"));
  EXPECT_EQ(entry.at("name"), machine.path("dev/gba0"));
}

TEST_F(Machine, FindsAnotherIdThatTheVariableGives) {
  machine.plug_in({.vendor = "0x8086", .device = "0x12ab"});
  EXPECT_EQ(list({"GBA_PCI_ID=8086:12ab"}).at("plugged_in").size(), 1U);
  EXPECT_EQ(list({"GBA_PCI_ID=8086:12ac"}).at("plugged_in").size(), 0U);
  const Json wrong = gba_json({"list"}, environment({"GBA_PCI_ID=8086"}), 2);
  EXPECT_EQ(wrong.at("error").at("name"), "EINVAL");
  EXPECT_THAT(wrong.at("error").at("text").get<std::string>(), HasSubstr("not of the form vvvv:dddd"));
}

TEST_F(Machine, WithoutAGbaIsReported) {
  const auto outcome = gba({"check"}, environment());
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("problem  device         no GBA is plugged in, and GBA_DEVICE names none\n"));
  EXPECT_THAT(outcome.output, HasSubstr("1 problem\n"));
}

// The machine that runs the tests, which may or may not have a GBA.
TEST(ThisMachine, IsReportedToHaveAGbaOrNot) {
  const bool has_one = !gba_json({"list"}).at("plugged_in").empty() || std::filesystem::exists("/dev/gba0");
  const auto outcome = gba({"check"});
  EXPECT_EQ(outcome.output.find("no GBA is plugged in") == std::string::npos, has_one) << outcome.output;
  EXPECT_THAT(outcome.output, testing::ContainsRegex(outcome.exit.code == 0 ? ": ok\n$" : "[0-9]+ problems?\n$"));
  EXPECT_TRUE(has_one || outcome.exit.code == 1) << outcome.exit.code;
}

TEST_F(Machine, IsOkIfNothingIsMissing) {
  machine.whole();
  const Json result = check();
  EXPECT_EQ(result.at("device"), "0000:3b:00.0");
  for (const auto& entry : result.at("checks")) {
    EXPECT_EQ(entry.at("verdict"), "ok") << entry;
  }
  EXPECT_EQ(result.at("checks").size(), 10U) << result;
  EXPECT_EQ(found(result, "kind").at("found"), "hardware: PCI function 0000:3b:00.0");
  EXPECT_THAT(gba({"check"}, environment()).output, testing::EndsWith("0000:3b:00.0: ok\n"));
}

TEST_F(Machine, WithIommufdIsOpenedThroughTheNodeOfTheFunction) {
  machine.whole();
  machine.with_iommufd();
  machine.remove("dev/vfio/vfio");
  const Json result = check();
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_THAT(found(result, "device node").value("found", ""), HasSubstr("dev/vfio/devices/vfio0"));
  EXPECT_THAT(found(result, "memory node").value("found", ""), HasSubstr("dev/iommu"));
}

TEST_F(Machine, WithIommufdIsOpenedThroughTheGroupIfThatIsNamed) {
  machine.whole();
  machine.with_iommufd();
  const Json result = check({machine.path("dev/vfio/12")});
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_THAT(found(result, "device node").value("found", ""), HasSubstr("dev/vfio/12"));
  EXPECT_THAT(found(result, "memory node").value("found", ""), HasSubstr("dev/vfio/vfio"));
}

// Linux 6.1 and kernels without iommufd have the folder of the function's character device, but not the device.
TEST_F(Machine, WithoutIommufdIsOpenedThroughTheGroup) {
  machine.whole();
  machine.folder(FakeMachine::device_folder("0000:3b:00.0") + "/vfio-dev/vfio0");
  machine.link("dev/gba0", "vfio/12");
  const Json entry = list().at("plugged_in").at(0);
  EXPECT_EQ(entry.at("device_node"), machine.path("dev/vfio/12"));
  EXPECT_EQ(entry.at("name"), machine.path("dev/gba0"));
  const Json result = check({machine.path("dev/gba0")});
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_THAT(found(result, "device node").value("found", ""), HasSubstr("dev/vfio/12"));
}

TEST_F(Machine, WithoutAnIommuGetsAFix) {
  machine.whole();
  machine.remove("sys/class/iommu");
  EXPECT_THAT(only_problem("iommu", "the kernel knows no IOMMU"), HasSubstr("intel_iommu=on"));
}

TEST_F(Machine, WithoutTheModuleGetsAFix) {
  machine.whole();
  machine.bind("0000:3b:00.0", "other");
  machine.remove("sys/bus/pci/drivers/vfio-pci");
  const Json result = check();
  EXPECT_THAT(found(result, "vfio-pci").value("fix", ""), HasSubstr("modprobe vfio-pci"));
  EXPECT_EQ(result.at("ok"), false);
}

TEST_F(Machine, WithAnotherDriverOnTheFunctionGetsAFix) {
  machine.whole();
  machine.bind("0000:3b:00.0", "nvme");
  machine.folder("sys/bus/pci/drivers/vfio-pci");
  EXPECT_THAT(only_problem("driver", "0000:3b:00.0 is bound to nvme"),
              HasSubstr("echo vfio-pci > /sys/bus/pci/devices/0000:3b:00.0/driver_override; echo 0000:3b:00.0 > "
                        "/sys/bus/pci/devices/0000:3b:00.0/driver/unbind"));
  machine.remove("sys/bus/pci/devices/0000:3b:00.0/driver");
  EXPECT_THAT(only_problem("driver", "has no driver"), Not(HasSubstr("unbind")));
}

TEST_F(Machine, WithAnotherDriverInTheGroupIsNotViable) {
  machine.whole();
  machine.plug_in({.address = "0000:3b:00.1", .vendor = "0x8086", .device = "0x1", .driver = "e1000e"});
  machine.plug_in({.address = "0000:3a:00.0", .vendor = "0x8086", .device = "0x2", .driver = "pcieport"});
  machine.plug_in({.address = "0000:3b:00.2", .vendor = "0x8086", .device = "0x3", .driver = ""});
  EXPECT_THAT(only_problem("group", "group 12 of 4 functions is not viable: other drivers have 0000:3b:00.1 (e1000e)"),
              HasSubstr("/sys/bus/pci/devices/0000:3b:00.1/driver_override"));
  machine.bind("0000:3b:00.1", "vfio-pci");
  EXPECT_EQ(check().at("ok"), true);
}

TEST_F(Machine, WithoutIommuModeIsRefused) {
  machine.whole();
  machine.file("sys/kernel/iommu_groups/12/name", "vfio-noiommu");
  EXPECT_THAT(only_problem("group", "has no IOMMU"), HasSubstr("enable_unsafe_noiommu_mode"));
}

TEST_F(Machine, WithoutDeviceNodesGetsAFix) {
  machine.whole();
  machine.remove("dev/vfio/12");
  EXPECT_THAT(only_problem("device node", "there is no " + machine.path("dev/vfio/12")), HasSubstr("vfio-pci"));
  machine.whole();
  machine.remove("dev/vfio/vfio");
  EXPECT_THAT(only_problem("memory node", "there is no " + machine.path("dev/vfio/vfio")), HasSubstr("modprobe"));
}

TEST_F(Machine, WithoutHugePagesIsStillOk) {
  machine.whole();
  machine.remove("sys/kernel/mm");
  EXPECT_EQ(found(check(), "huge pages").at("verdict"), "ok") << "no setting asks for them";
  const Json result = check({}, {"GBA_FLAGS=huge"});
  EXPECT_EQ(result.at("ok"), true);
  EXPECT_EQ(found(result, "huge pages").at("verdict"), "note");
}

TEST_F(Machine, IsCheckedByAddressByNodeAndByName) {
  machine.whole();
  machine.plug_in({.address = "0000:5e:00.0", .group = "13"});
  machine.file("dev/vfio/13", "");
  machine.link("dev/gba1", "vfio/13");
  for (const auto& name : {std::string("0000:5e:00.0"), machine.path("dev/vfio/13"), machine.path("dev/gba1")}) {
    const Json result = check({name});
    EXPECT_EQ(result.at("device"), name);
    EXPECT_THAT(found(result, "device").value("found", ""), HasSubstr("0000:5e:00.0, 1eaf:0b01, NUMA node 1"));
    EXPECT_EQ(result.at("ok"), true) << result;
  }
  EXPECT_EQ(check({}, {"GBA_DEVICE=0000:5e:00.0"}).at("device"), "0000:5e:00.0");
}

TEST_F(Machine, NamesThatAreNotOfAGbaAreReported) {
  machine.whole();
  machine.plug_in({.address = "0000:01:00.0", .vendor = "0x8086", .device = "0x1234"});
  EXPECT_THAT(found(check({"0000:01:00.0"}), "device").value("found", ""), HasSubstr("it has another PCI id"));
  EXPECT_THAT(found(check({"0000:77:00.0"}), "device").value("found", ""), HasSubstr("there is no PCI function"));
  EXPECT_THAT(found(check({"/no/such"}), "device").value("found", ""), HasSubstr("there is no /no/such"));
  EXPECT_THAT(found(check({"/dev/null"}), "device").value("found", ""), HasSubstr("neither a socket nor"));
}

/// Runs gba check as user nobody, which is in no group, with a limit of `memlock` KiB.
class Unprivileged : public Machine {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "only root can become another user";
    }
    machine.whole();
    std::filesystem::permissions(machine.path("."), std::filesystem::perms::all);
    // The build may be in a folder that other users may not enter.
    std::filesystem::copy_file(test_support::program("gba"), machine.path("gba"));
    std::filesystem::permissions(machine.path("gba"), std::filesystem::perms(0755));
    std::filesystem::copy_file(test_support::program("../lib/libgba.so.0"), machine.path("libgba.so.0"));
    ::chmod(machine.path("dev/vfio/vfio").c_str(), 0666);
    ::chmod(machine.path("dev/vfio/12").c_str(), 0666);
  }
  Json check_as_nobody(const std::string& memlock_kib) {
    const auto outcome =
        test_support::run({"/usr/bin/env", "-u", "GBA_DEVICE", "GBA_SYSFS=" + machine.path("sys"),
                           "GBA_DEVFS=" + machine.path("dev"), "LD_LIBRARY_PATH=" + machine.path("."), "bash", "-c",
                           "ulimit -l " + memlock_kib + " && exec setpriv --reuid 65534 --regid 65534 --clear-groups " +
                               machine.path("gba") + " check --json"});
    auto json = Json::parse_or_null(outcome.output);
    EXPECT_TRUE(json.is_object()) << outcome.output;
    return json;
  }
};

TEST_F(Unprivileged, MemlockIsComparedWithWhatIsNeeded) {
  const Json result = check_as_nobody("64");
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_THAT(found(result, "memlock").value("found", ""), HasSubstr("limit 64 KiB, needed 12 KiB"));
  const Json little = check_as_nobody("2");
  EXPECT_EQ(little.at("ok"), false);
  EXPECT_THAT(found(little, "memlock").value("fix", ""), HasSubstr("ulimit -l"));
}

TEST_F(Unprivileged, MissingPermissionsGetAFix) {
  ::chmod(machine.path("dev/vfio/12").c_str(), 0600);
  Json node = found(check_as_nobody("2048"), "device node");
  EXPECT_THAT(node.value("found", ""),
              HasSubstr("user nobody has no permission for " + machine.path("dev/vfio/12") + ", root:root 0600"));
  EXPECT_THAT(node.value("fix", ""), HasSubstr("70-gba.rules"));
  ASSERT_EQ(::chown(machine.path("dev/vfio/12").c_str(), 0, 1), 0);
  ::chmod(machine.path("dev/vfio/12").c_str(), 0660);
  node = found(check_as_nobody("2048"), "device node");
  EXPECT_EQ(node.value("fix", ""), "usermod -a -G daemon nobody (as root), then log in again");
}

TEST_F(Machine, SocketThatAnswersIsOk) {
  test_support::FakeDevice device;
  const Json result = check({device.path()});
  EXPECT_EQ(result.at("ok"), true) << result;
  EXPECT_EQ(found(result, "opens").at("found"), "port 0, 32 groups of up to 708 members, release flags in host memory");
  const Json by_variable = check({}, {"GBA_DEVICE=" + device.socket()});
  EXPECT_EQ(by_variable.at("device"), device.socket());
  EXPECT_EQ(by_variable.at("ok"), true);
}

TEST_F(Machine, SocketThatDoesNotAnswerIsReported) {
  const auto missing = found(check({"vfio-user:" + machine.path("none")}), "socket");
  EXPECT_EQ(missing.at("fix"), "gba-fake-device --socket " + machine.path("none"));
  machine.file("file", "");
  EXPECT_THAT(found(check({"vfio-user:" + machine.path("file")}), "socket").value("found", ""),
              HasSubstr("not a socket"));
  test_support::FakeDevice device;
  device.process().signal(SIGKILL);
  ASSERT_TRUE(device.process().wait(test_support::Seconds{20}));
  const Json dead = check({device.path()});
  EXPECT_EQ(dead.at("ok"), false);
  EXPECT_THAT(found(dead, "opens").value("found", ""), HasSubstr("connection refused"));
  EXPECT_THAT(found(check({"@no-such-gba-socket"}), "opens").at("verdict"), "problem");
}

}  // namespace
}  // namespace tool_test
