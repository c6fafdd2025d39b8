// SPDX-License-Identifier: Apache-2.0
// Finding devices behind the kernel's VFIO, on made-up trees of sysfs and device nodes. The finder looks a character
// device up in sysfs by its number, so /dev/null and /dev/zero stand in for VFIO's nodes.
#include "driver/discovery.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/driver/fake_sysfs.hpp"

namespace gba::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kAddress = "0000:3b:00.0";
const std::string kOther = "0000:3c:00.0";

class Discovery : public testing::Test {
 protected:
  Discovery() { ::unsetenv("GBA_DEVICE"); }

  [[nodiscard]] std::string dev(const std::string& name) const { return dev_.file(name); }
  void add_node(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(dev(name)).parent_path());
    const std::ofstream node(dev(name));
  }
  void add_link(const std::string& name, const std::string& to) const {
    std::filesystem::create_symlink(to, dev(name));
  }
  [[nodiscard]] Result<Location> find(const std::string& path) const {
    return DeviceFinder(sysfs_.path(), dev_.path(), *expected_pci_ids(nullptr)).find(path.c_str());
  }
  [[nodiscard]] Error error_of(const std::string& path) const {
    const auto found = find(path);
    return found ? Error{{}, "found " + found->nodes.device} : found.error();
  }

  FakeSysfs sysfs_;
  test_support::TempDir dev_;
  static inline const std::string kNull = "1:3";  // the number of /dev/null
  static inline const std::string kZero = "1:5";
};

TEST_F(Discovery, UsesTheGroupWithoutACharacterDevice) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add_vfio_device(kAddress, "vfio0", "");  // as on Linux 6.1
  add_node("iommu");
  const auto found = find(kAddress);
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->way, Way::kVfioGroup);
  EXPECT_EQ(found->shown, kAddress);
  EXPECT_EQ(found->nodes.address, kAddress);
  EXPECT_EQ(found->nodes.device, dev("vfio/12"));
  EXPECT_EQ(found->nodes.iommu, dev("vfio/vfio"));
}

TEST_F(Discovery, UsesTheCharacterDeviceIfItAndIommufdExist) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add_vfio_device(kAddress, "vfio3", "511:3");
  EXPECT_EQ(find(kAddress)->way, Way::kVfioGroup) << "no node";
  add_node("vfio/devices/vfio3");
  EXPECT_EQ(find(kAddress)->way, Way::kVfioGroup) << "no iommufd";
  add_node("iommu");
  const auto found = find(kAddress);
  EXPECT_EQ(found->way, Way::kVfioCdev);
  EXPECT_EQ(found->nodes.device, dev("vfio/devices/vfio3"));
  EXPECT_EQ(found->nodes.iommu, dev("iommu"));
}

TEST_F(Discovery, RecognizesACharacterDeviceByItsNumberAndFollowsLinks) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add_vfio_device(kAddress, "vfio0", kNull);
  add_link("gba0", "/dev/null");
  const auto found = find(dev("gba0"));
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->way, Way::kVfioCdev);
  EXPECT_EQ(found->nodes.device, dev("gba0"));
  EXPECT_EQ(found->nodes.address, kAddress);
  EXPECT_EQ(found->key, find(kAddress)->key) << "two names of one device";
}

TEST_F(Discovery, FindsTheGbaOfAGroupNode) {
  sysfs_.add("0000:3a:00.0", "12", "pcieport", "0x1234");
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add_group_node("12", kNull);
  const auto found = find("/dev/null");
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->way, Way::kVfioGroup);
  EXPECT_EQ(found->nodes.device, "/dev/null");
  EXPECT_EQ(found->nodes.address, kAddress);
}

TEST_F(Discovery, RefusesAGroupWithTwoGbasAndNamesBoth) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add(kOther, "12", "vfio-pci", "0x0b00");
  sysfs_.add_group_node("12", kNull);
  const Error error = error_of("/dev/null");
  EXPECT_EQ(error.code, std::errc::invalid_argument);
  EXPECT_THAT(error.text, AllOf(HasSubstr("2 GBAs"), HasSubstr(kAddress + " or " + kOther)));
  EXPECT_EQ(find(kOther)->nodes.address, kOther);
}

TEST_F(Discovery, RefusesAGroupWithoutAGba) {
  sysfs_.add(kAddress, "12", "vfio-pci", "0x1234");
  sysfs_.add_group_node("12", kNull);
  EXPECT_EQ(error_of("/dev/null").code, std::errc::no_such_device);
  EXPECT_THAT(error_of("/dev/null").text, HasSubstr("no GBA in IOMMU group 12"));
}

TEST_F(Discovery, RefusesNoIommuModeUnderEveryName) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.set_group_name("12", "vfio-noiommu");
  sysfs_.add_group_node("noiommu-12", kNull);
  sysfs_.add_vfio_device(kAddress, "noiommu-vfio0", kZero);
  for (const std::string& path : {kAddress, std::string("/dev/null"), std::string("/dev/zero")}) {
    EXPECT_EQ(error_of(path).code, std::errc::operation_not_supported) << path;
    EXPECT_THAT(error_of(path).text, AllOf(HasSubstr("no-IOMMU mode"), HasSubstr(path)));
  }
}

TEST_F(Discovery, ReportsAMissingIommu) {
  sysfs_.add(kAddress, "", "vfio-pci");
  EXPECT_EQ(error_of(kAddress).code, std::errc::operation_not_supported);
  EXPECT_THAT(error_of(kAddress).text, HasSubstr("intel_iommu=on"));
}

TEST_F(Discovery, SaysHowToBindADevice) {
  sysfs_.add(kAddress, "12", "");
  const std::string function = "/sys/bus/pci/devices/" + kAddress;
  EXPECT_EQ(error_of(kAddress).code, std::errc::no_such_device);
  EXPECT_THAT(error_of(kAddress).text,
              AllOf(HasSubstr("no driver has it"), HasSubstr("modprobe vfio-pci"), HasSubstr("70-gba.rules"),
                    HasSubstr("echo vfio-pci > " + function + "/driver_override"), Not(HasSubstr("unbind")),
                    HasSubstr("echo " + kAddress + " > /sys/bus/pci/drivers_probe")));
  sysfs_.add(kOther, "13", "uio_pci_generic");
  sysfs_.add_group_node("13", kNull);
  EXPECT_THAT(error_of(kOther).text, AllOf(HasSubstr("driver uio_pci_generic has it"), HasSubstr("/driver/unbind")));
  EXPECT_THAT(error_of("/dev/null").text, HasSubstr("driver uio_pci_generic has it"));
}

TEST_F(Discovery, RefusesOtherDevices) {
  sysfs_.add(kAddress, "12", "vfio-pci", "0x1234");
  sysfs_.add_vfio_device(kAddress, "vfio0", kNull);
  for (const std::string& path : {kAddress, std::string("/dev/null")}) {
    EXPECT_EQ(error_of(path).code, std::errc::no_such_device);
    EXPECT_THAT(error_of(path).text, AllOf(HasSubstr("PCI id is 1eaf:1234"), HasSubstr("GBA_PCI_ID")));
  }
  EXPECT_THAT(error_of("0000:00:1f.7").text, HasSubstr("there is no PCI function 0000:00:1f.7"));
}

TEST_F(Discovery, RefusesCharacterDevicesOfOtherDrivers) {
  EXPECT_THAT(error_of("/dev/null").text, HasSubstr("not one of VFIO's")) << "unknown to sysfs";
  sysfs_.add_character_device(sysfs_.root() / "devices/virtual/misc/vfio", "misc", kNull);
  EXPECT_EQ(error_of("/dev/null").code, std::errc::no_such_device);
  EXPECT_THAT(error_of("/dev/null").text, HasSubstr("PCI address"));
}

TEST_F(Discovery, PrefersGba0ThenTheFirstGbaOfTheMachine) {
  EXPECT_EQ(error_of("").code, std::errc::no_such_device);
  EXPECT_THAT(error_of("").text, HasSubstr(dev("gba0")));
  sysfs_.add("0000:00:01.0", "1", "vfio-pci", "0x1234");
  sysfs_.add(kOther, "13", "vfio-pci");
  EXPECT_EQ(find("")->nodes.address, kOther);
  sysfs_.add(kAddress, "12", "");
  EXPECT_EQ(find("")->nodes.address, kOther) << "the other one cannot be opened";
  add_link("gba0", "/dev/null");
  sysfs_.add("0000:3d:00.0", "14", "vfio-pci", "0x0b00");
  sysfs_.add_group_node("14", kNull);
  EXPECT_EQ(find("")->nodes.address, "0000:3d:00.0");
}

TEST_F(Discovery, ListsTheGbasBoundToVfioByAddress) {
  const DeviceFinder finder(sysfs_.path(), dev_.path(), *expected_pci_ids(nullptr));
  EXPECT_THAT(finder.all(), ::testing::IsEmpty());
  sysfs_.add("0000:3d:00.2", "16", "vfio-pci");
  sysfs_.add("0000:3d:00.1", "15", "vfio-pci");
  sysfs_.add("0000:3d:00.3", "17", "");
  sysfs_.add("0000:00:01.0", "1", "vfio-pci", "0x1234");
  EXPECT_THAT(finder.all(), ::testing::ElementsAre("0000:3d:00.1", "0000:3d:00.2"));
}

TEST_F(Discovery, SaysWhyTheOnlyGbaCannotBeOpened) {
  sysfs_.add(kAddress, "12", "");
  EXPECT_THAT(error_of("").text, HasSubstr(kAddress + ": no driver has it"));
}

TEST_F(Discovery, PrefersTheVariableToGba0) {
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add(kOther, "13", "vfio-pci");
  ::setenv("GBA_DEVICE", kOther.c_str(), 1);
  EXPECT_EQ(find("")->nodes.address, kOther);
  EXPECT_EQ(find(kAddress)->nodes.address, kAddress);
  ::unsetenv("GBA_DEVICE");
}

TEST_F(Discovery, RecognizesAPciAddressByItsForm) {
  sysfs_.add("10000:3b:00.0", "12", "vfio-pci");
  EXPECT_TRUE(find("10000:3b:00.0"));
  for (const std::string path : {"3b:00.0", "0000:3b:00", "0000:3b:00.0.", "0000-3b-00-0", "0000:3b:0g.0"}) {
    EXPECT_THAT(error_of(path).text, HasSubstr("no such file")) << path;
  }
}

TEST_F(Discovery, AcceptsOnlyTheConfiguredIds) {
  sysfs_.add(kAddress, "12", "vfio-pci", "0x1234");
  const DeviceFinder finder(sysfs_.path(), dev_.path(), {{.vendor = 0x1eaf, .device = 0x1234}});
  EXPECT_EQ(finder.find(nullptr)->nodes.address, kAddress);
}

TEST_F(Discovery, GivesTheTokenToPhysicalAndVirtualFunctions) {
  const VfToken token = vf_token("00112233-4455-6677-8899-aabbccddeeff").value();
  const DeviceFinder finder(sysfs_.path(), dev_.path(), *expected_pci_ids(nullptr), token);
  const auto given = [&](const std::string& address) { return finder.find(address.c_str())->nodes.token == token; };
  const auto folder = sysfs_.root() / "devices/pci0000:3a";
  sysfs_.add(kAddress, "12", "vfio-pci");
  sysfs_.add(kOther, "13", "vfio-pci", "0x0b02");
  EXPECT_FALSE(given(kAddress));
  std::ofstream(folder / kAddress / "sriov_totalvfs") << "4\n";
  EXPECT_TRUE(given(kAddress)) << "a physical function sets the token of its virtual functions";
  EXPECT_FALSE(given(kOther)) << "not a virtual function";
  std::filesystem::create_directory_symlink(folder / kAddress, folder / kOther / "physfn");
  EXPECT_TRUE(given(kOther));
}

}  // namespace
}  // namespace gba::test
