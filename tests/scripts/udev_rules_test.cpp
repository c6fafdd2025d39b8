// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/scripts/stand_ins.hpp"
#include "tests/support/process.hpp"
#include "tests/support/text.hpp"
#include "uapi/gba_device.h"

namespace {

using test_support::run;
using test_support::TempDir;
using testing::HasSubstr;
using testing::Not;

std::string hexadecimal(unsigned value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x", digits, value);
  return text;
}

const std::string kVendor = hexadecimal(GBA_PCI_VENDOR_ID, 4);
const std::string kDevice = hexadecimal(GBA_PCI_DEVICE_ID, 4);
const std::string kDeviceVf = hexadecimal(GBA_PCI_DEVICE_ID_VF, 4);
const std::string kDeviceSwitch = hexadecimal(GBA_PCI_DEVICE_ID_SWITCH, 4);

std::string generated(const std::string& name) {
  return std::string(GBA_UDEV_DIR "/") + name;
}

/// The rules, with continued lines joined, and without comments and empty lines.
std::vector<std::string> rules() {
  std::ifstream in(generated("70-gba.rules"));
  std::vector<std::string> found;
  std::string rule;
  for (std::string line; std::getline(in, line);) {
    const bool continues = !line.empty() && line.back() == '\\';
    rule += continues ? line.substr(0, line.size() - 1) : line;
    if (continues) {
      continue;
    }
    if (!rule.empty() && rule.front() != '#') {
      found.push_back(rule);
    }
    rule.clear();
  }
  return found;
}

std::string rule_for(const std::string& subsystem) {
  for (const auto& rule : rules()) {
    if (rule.find("SUBSYSTEM==\"" + subsystem + "\"") != std::string::npos) {
      return rule;
    }
  }
  return "";
}

TEST(UdevRules, AreWellFormed) {
  const std::string rule = R"re((\s*[A-Z]+(\{[A-Za-z_]+\})?(==|!=|=|\+=|-=|:=)"[^"]*"(,|$))+\s*)re";
  EXPECT_EQ(rules().size(), 6U);
  for (const auto& line : rules()) {
    EXPECT_TRUE(test_support::matches(line, rule)) << line;
  }
}

TEST(UdevRules, SatisfyUdevadmVerifyIfAvailable) {
  if (run({"udevadm", "verify", "--help"}).exit.code != 0) {
    GTEST_SKIP() << "this machine has no udevadm verify (systemd 254)";
  }
  // Without this option it fails if the group gba does not exist.
  const auto outcome = run({"udevadm", "verify", "--resolve-names=never", generated("70-gba.rules")});
  EXPECT_TRUE(outcome.exit.clean()) << outcome.output;
}

TEST(UdevRules, BindTheHeadersIdsToVfioPci) {
  const auto rule = rule_for("pci");
  EXPECT_THAT(rule, HasSubstr("ATTR{vendor}==\"" + kVendor + "\""));
  EXPECT_THAT(rule, HasSubstr("ATTR{device}==\"" + kDevice + "|" + kDeviceVf + "|" + kDeviceSwitch + "\""));
  EXPECT_THAT(rule, HasSubstr("ATTR{class}==\"" + hexadecimal(GBA_PCI_CLASS, 6) + "\""));
  EXPECT_THAT(rule, HasSubstr("ATTR{driver_override}=\"vfio-pci\""));
  EXPECT_THAT(rule, HasSubstr("/sys/bus/pci/drivers_probe"));
}

TEST(UdevRules, GiveTheCharacterDeviceToGroupGbaUnderAName) {
  const auto rule = rule_for("vfio-dev");
  EXPECT_THAT(rule, HasSubstr("ATTRS{vendor}==\"" + kVendor + "\""));
  EXPECT_THAT(rule, HasSubstr("ATTRS{device}==\"" + kDevice + "|" + kDeviceVf + "|" + kDeviceSwitch + "\""));
  EXPECT_THAT(rule, HasSubstr("GROUP=\"gba\", MODE=\"0660\""));
  EXPECT_THAT(rule, HasSubstr("SYMLINK+=\"gba$result gba/by-path/$id\""));
}

TEST(UdevRules, RenumberTheOthersWhenAGbaIsAddedOrRemoved) {
  const auto all = rules();
  const auto rule = std::find_if(all.begin(), all.end(), [](const std::string& text) {
    return text.find("ENV{PCI_ID}==\"1EAF:0B01|1EAF:0B02|1EAF:0B00\"") != std::string::npos;
  });
  ASSERT_NE(rule, all.end());
  EXPECT_THAT(*rule, HasSubstr("ACTION==\"add|remove\""));
  EXPECT_THAT(*rule, HasSubstr("RUN{program}+=\"gba-index --rename\"")) << "devices of others would get events";
}

TEST(UdevRules, GiveTheNodeOfAnIommuGroupOfGbasToGroupGba) {
  const auto rule = rule_for("vfio");
  EXPECT_THAT(rule, HasSubstr("KERNEL==\"[0-9]*\", PROGRAM==\"gba-index --rights $kernel\"")) << "not the container";
  EXPECT_THAT(rule, HasSubstr("GROUP=\"gba\", MODE=\"0660\""));
  EXPECT_THAT(rule_for("vfio-dev"), HasSubstr("link_priority=10")) << "the character device wins if both exist";
}

TEST(UdevRules, ShareTheIommuAndKeepItsOtherUsers) {
  const auto rule = rule_for("misc");
  EXPECT_THAT(rule, HasSubstr("KERNEL==\"iommu\""));
  EXPECT_THAT(rule, HasSubstr("gba-index --share /dev/iommu"));
  EXPECT_THAT(rule, Not(HasSubstr("GROUP")));
}

/// A sysfs with GBAs of both kinds and other functions between them.
class GbaIndex : public testing::Test {
 protected:
  GbaIndex() {
    add("0000:3b:00.0", kVendor, kDevice);
    add("0000:3a:00.0", kVendor, kDeviceSwitch);
    add("0000:3a:00.1", "0x8086", kDevice);
    add("0000:3a:00.2", kVendor, "0x1234");
    add("0000:39:00.0", "0x8086", "0x2030", "0x060400");
  }

  test_support::Outcome index_of(const std::string& address) {
    return run({generated("gba-index"), address}, {"SYSFS_PATH=" + dir_.path()});
  }
  test_support::Outcome index_of_group(const std::string& group) {
    return run({generated("gba-index"), "--group", group}, {"SYSFS_PATH=" + dir_.path()});
  }
  int rights_of_group(const std::string& group) {
    return run({generated("gba-index"), "--rights", group}, {"SYSFS_PATH=" + dir_.path()}).exit.code;
  }
  void put_in_group(const std::string& group, const std::string& address) {
    const auto root = std::filesystem::path(dir_.path());
    const auto folder = root / "kernel/iommu_groups" / group / "devices";
    std::filesystem::create_directories(folder);
    std::filesystem::create_directory_symlink(root / "bus/pci/devices" / address, folder / address);
    std::filesystem::create_directory_symlink(root / "kernel/iommu_groups" / group,
                                              root / "bus/pci/devices" / address / "iommu_group");
  }

  TempDir dir_;

 private:
  void add(const std::string& address, const std::string& vendor, const std::string& device,
           const std::string& pci_class = "0x120000") {
    const auto folder = std::filesystem::path(dir_.path()) / "bus/pci/devices" / address;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "vendor") << vendor << '\n';
    std::ofstream(folder / "device") << device << '\n';
    std::ofstream(folder / "class") << pci_class << '\n';
  }
};

TEST_F(GbaIndex, CountsOnlyGbasByAddress) {
  EXPECT_EQ(index_of("0000:3a:00.0").output, "0\n");
  EXPECT_EQ(index_of("0000:3b:00.0").output, "1\n");
}

/// gba-index with a udevadm that prints its arguments, in a sysfs in which the nodes of a GBA and of another vendor's
/// device are open to vfio.
class GbaIndexTriggers : public GbaIndex {
 protected:
  GbaIndexTriggers() {
    programs_.add("udevadm", "echo udevadm $*");
    const auto root = std::filesystem::path(dir_.path());
    put_in_group("7", "0000:3b:00.0");
    put_in_group("8", "0000:3a:00.1");
    for (const char* group : {"7", "8"}) {
      std::filesystem::create_directories(root / "class/vfio" / group);
    }
    std::filesystem::create_directories(root / "bus/pci/devices/0000:3b:00.0/vfio-dev/vfio0");
    std::filesystem::create_directories(root / "bus/pci/devices/0000:3a:00.1/vfio-dev/vfio1");
    std::filesystem::create_directories(root / "class/misc/iommu");
  }

  [[nodiscard]] test_support::Outcome trigger(const std::string& option, const std::string& sysfs) const {
    return run({generated("gba-index"), option},
               {"SYSFS_PATH=" + sysfs, "PATH=" + programs_.path() + ":/usr/bin:/bin"});
  }
  [[nodiscard]] std::string expected(const std::vector<std::string>& folders) const {
    std::string line = "udevadm trigger --action=change";
    for (const auto& folder : folders) {
      line += " " + std::filesystem::canonical(std::filesystem::path(dir_.path()) / folder).string();
    }
    return line + "\n";
  }

 private:
  StandIns programs_;
};

TEST_F(GbaIndexTriggers, GbasTheirNodesAndIommufdOnly) {
  const auto outcome = trigger("--trigger", dir_.path());
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output,
            expected({"bus/pci/devices/0000:3a:00.0", "bus/pci/devices/0000:3b:00.0",
                      "bus/pci/devices/0000:3b:00.0/vfio-dev/vfio0", "class/misc/iommu", "class/vfio/7"}));
}

TEST_F(GbaIndexTriggers, NodesOfGbasOnlyToRenameThem) {
  const auto outcome = trigger("--rename", dir_.path());
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, expected({"bus/pci/devices/0000:3b:00.0/vfio-dev/vfio0", "class/vfio/7"}));
}

TEST_F(GbaIndexTriggers, NothingOnAMachineWithoutGbas) {
  const TempDir empty;
  for (const char* option : {"--trigger", "--rename"}) {
    const auto outcome = trigger(option, empty.path());
    EXPECT_EQ(outcome.exit.code, 0);
    EXPECT_EQ(outcome.output, "");
  }
}

TEST_F(GbaIndex, RefusesOtherFunctions) {
  const auto outcome = index_of("0000:3a:00.1");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("0000:3a:00.1 is not a GBA"));
}

TEST_F(GbaIndex, FindsTheGbaOfAnIommuGroup) {
  put_in_group("7", "0000:3b:00.0");
  put_in_group("7", "0000:39:00.0");  // the bridge above it
  EXPECT_EQ(index_of_group("7").output, "1 0000:3b:00.0\n");
  EXPECT_EQ(rights_of_group("7"), 0);
}

TEST_F(GbaIndex, LeavesOtherIommuGroupsAlone) {
  put_in_group("8", "0000:3a:00.1");
  EXPECT_EQ(index_of_group("8").exit.code, 1);
  EXPECT_EQ(index_of_group("8").output, "") << "not an error";
  EXPECT_EQ(index_of_group("9").exit.code, 1) << "the group has disappeared";
}

TEST_F(GbaIndex, RefusesAGroupWithAnotherDevice) {
  put_in_group("7", "0000:3b:00.0");
  put_in_group("7", "0000:3a:00.1");
  EXPECT_EQ(rights_of_group("7"), 1);
  const auto outcome = index_of_group("7");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("must not open: 0000:3a:00.1"));
}

TEST_F(GbaIndex, GivesNoNameToAGroupOfTwo) {
  put_in_group("7", "0000:3b:00.0");
  put_in_group("7", "0000:3a:00.0");
  EXPECT_EQ(rights_of_group("7"), 0) << "each GBA can be opened by its address";
  const auto outcome = index_of_group("7");
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("more than one GBA"));
}

/// gba-index --share of a node, with stand-ins for all the programs that it may call. They print their arguments.
class GbaIndexShares : public testing::Test {
 protected:
  GbaIndexShares() {
    programs_.add("chgrp", "echo chgrp $*");
    programs_.add("chmod", "echo chmod $*");
  }
  void node_belongs_to(const std::string& group) { programs_.add("stat", "echo " + group); }
  void acls_can_be_set() { programs_.add("setfacl", "echo setfacl $*"); }
  [[nodiscard]] test_support::Outcome share() const {
    return run({generated("gba-index"), "--share", "/dev/iommu"}, {"PATH=" + programs_.path()});
  }

 private:
  StandIns programs_;
};

TEST_F(GbaIndexShares, ByAnAclWhoeverHasTheNode) {
  acls_can_be_set();
  for (const char* group : {"root", "kvm"}) {
    node_belongs_to(group);
    const auto outcome = share();
    EXPECT_EQ(outcome.exit.code, 0);
    EXPECT_EQ(outcome.output, "setfacl -m g:gba:rw /dev/iommu\n");
  }
}

TEST_F(GbaIndexShares, WithoutAclsANodeThatHasNoOtherUsers) {
  node_belongs_to("root");
  const auto outcome = share();
  EXPECT_EQ(outcome.exit.code, 0);
  EXPECT_EQ(outcome.output, "chgrp gba /dev/iommu\nchmod g+rw /dev/iommu\n");
}

TEST_F(GbaIndexShares, WithoutAclsNoNodeOfAnotherGroup) {
  node_belongs_to("kvm");
  const auto outcome = share();
  EXPECT_EQ(outcome.exit.code, 1);
  EXPECT_EQ(outcome.output,
            "gba-index: /dev/iommu belongs to group kvm: without setfacl (package acl), put the users of GBAs in it\n");
}

}  // namespace
