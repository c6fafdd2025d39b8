// SPDX-License-Identifier: Apache-2.0
// Behaviour particular to one of the two ways to a device behind the kernel's VFIO.
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/wrong_files.hpp"
#include "tests/unit/driver/fake_sysfs.hpp"
#include "tests/unit/driver/vfio_fixture.hpp"

namespace gba::test {
namespace {

using testing::_;
using testing::AllOf;
using testing::HasSubstr;
using testing::SetErrnoAndReturn;
using testing::StrEq;

class VfioOpen : public testing::Test {
 protected:
  VfioOpen() {
    sysfs_.add("0000:3b:00.0", "12", "vfio-pci");
    sysfs_.add("0000:3b:00.1", "12", "nvme");
    sysfs_.add("0000:3a:00.0", "12", "pcieport");
  }

  Error error_of(const Way& way) {
    const auto opened = way.open(system_, PciSysfs(sysfs_.path()), way.nodes);
    EXPECT_EQ(kernel_.left_over().empty(), !opened) << kernel_.left_over();
    return opened ? Error{} : opened.error();
  }
  Error error_with(const Way& way, unsigned long request, int error) {
    EXPECT_CALL(system_, ioctl(_, request, _)).WillOnce(SetErrnoAndReturn(error, -1)).RetiresOnSaturation();
    return error_of(way);
  }
  Error error_opening(const Way& way, const std::string& node, int error) {
    EXPECT_CALL(system_, open(StrEq(node), _)).WillOnce(SetErrnoAndReturn(error, -1)).RetiresOnSaturation();
    return error_of(way);
  }

  FakeSysfs sysfs_;
  FakeKernel kernel_;
  MockSystemCalls system_{kernel_};
};

TEST_F(VfioOpen, ReportsItsNameAndPath) {
  EXPECT_EQ((*kGroupWay.open(system_, no_sysfs(), kGroupNodes))->name(), "vfio-group");
  EXPECT_EQ((*kCdevWay.open(system_, no_sysfs(), kCdevNodes))->name(), "vfio-cdev");
}

TEST_F(VfioOpen, ReportsTheNumaNodeOfTheDevice) {
  EXPECT_EQ((*kGroupWay.open(system_, PciSysfs(sysfs_.path()), kGroupNodes))->numa_node(), -1);
  sysfs_.set_numa_node("0000:3b:00.0", "1");
  EXPECT_EQ((*kGroupWay.open(system_, PciSysfs(sysfs_.path()), kGroupNodes))->numa_node(), 1);
}

TEST_F(VfioOpen, SaysWhatToDoAboutFilesThatCannotBeOpened) {
  const Way ways[] = {kGroupWay, kCdevWay};
  for (const Way& way : ways) {
    for (const std::string& node : {way.nodes.device, way.nodes.iommu}) {
      Error error = error_opening(way, node, EACCES);
      EXPECT_EQ(error.code, std::errc::permission_denied);
      EXPECT_THAT(error.text, AllOf(HasSubstr(node), HasSubstr("group gba"), HasSubstr("70-gba.rules")));
      error = error_opening(way, node, EBUSY);
      EXPECT_EQ(error.code, std::errc::device_or_resource_busy);
      EXPECT_THAT(error.text, HasSubstr("another process has it open"));
      EXPECT_EQ(error_opening(way, node, ENOENT).code, std::errc::no_such_device);
    }
  }
  EXPECT_THAT(error_opening(kGroupWay, kGroupNodes.iommu, ENOENT).text, HasSubstr("modprobe vfio-pci"));
  EXPECT_THAT(error_opening(kCdevWay, kCdevNodes.iommu, ENODEV).text, HasSubstr("modprobe iommufd"));
}

TEST_F(VfioOpen, RefusesAnUnknownVersion) {
  kernel_.api_version = 1;
  EXPECT_EQ(error_of(kGroupWay).code, std::errc::protocol_error);
}

TEST_F(VfioOpen, RefusesNoIommuMode) {
  kernel_.extensions = {VFIO_NOIOMMU_IOMMU};
  const Error error = error_of(kGroupWay);
  EXPECT_EQ(error.code, std::errc::operation_not_supported);
  EXPECT_THAT(error.text, AllOf(HasSubstr("no-IOMMU mode"), HasSubstr("intel_iommu=on")));
}

TEST_F(VfioOpen, SaysWhichModuleIsMissing) {
  kernel_.extensions = {};
  EXPECT_THAT(error_of(kGroupWay).text, HasSubstr("modprobe vfio_iommu_type1"));
}

TEST_F(VfioOpen, IgnoresThatNoIommuModeIsPossible) {
  kernel_.extensions.insert(VFIO_NOIOMMU_IOMMU);
  EXPECT_EQ(error_of(kGroupWay).text, "");
}

TEST_F(VfioOpen, NamesTheDevicesThatKeepAGroupFromBeingUsed) {
  kernel_.group_flags = 0;
  const Error error = error_of(kGroupWay);
  EXPECT_EQ(error.code, std::errc::operation_not_permitted);
  EXPECT_THAT(error.text, HasSubstr("IOMMU group 12 cannot be used: 0000:3b:00.1 (driver nvme) is in it"));
  EXPECT_THAT(error.text, HasSubstr("driver/unbind"));
}

TEST_F(VfioOpen, ReportsAGroupThatIsInUse) {
  kernel_.group_flags |= VFIO_GROUP_FLAGS_CONTAINER_SET;
  EXPECT_EQ(error_of(kGroupWay).code, std::errc::device_or_resource_busy);
}

TEST_F(VfioOpen, SaysThatAnotherProcessHasTheGroup) {
  for (const unsigned long request : {VFIO_GROUP_SET_CONTAINER, VFIO_GROUP_GET_DEVICE_FD}) {
    const Error error = error_with(kGroupWay, request, EBUSY);
    EXPECT_EQ(error.code, std::errc::device_or_resource_busy);
    EXPECT_THAT(error.text, AllOf(HasSubstr("another process"), HasSubstr("0000:3b:00.0 (/dev/vfio/12)")));
  }
}

TEST_F(VfioOpen, PointsToTheLogIfInterruptsCannotBeRemapped) {
  EXPECT_THAT(error_with(kGroupWay, VFIO_SET_IOMMU, EPERM).text, HasSubstr("remap interrupts"));
  EXPECT_THAT(error_with(kCdevWay, VFIO_DEVICE_BIND_IOMMUFD, EPERM).text, HasSubstr("remap interrupts"));
}

TEST_F(VfioOpen, UsesAnyAddressIfTheKernelReportsNoRanges) {
  kernel_.iommu_has_capabilities = false;
  kernel_.page_sizes = 0x10000;
  const auto opened = kGroupWay.open(system_, no_sysfs(), kGroupNodes);
  const auto limits = (*opened)->dma_limits();
  EXPECT_EQ(limits->ranges, DmaLimits{}.ranges);
  EXPECT_EQ(limits->page, 0x10000U);
}

TEST_F(VfioOpen, DoesNotFollowABrokenChainOfCapabilities) {
  EXPECT_CALL(system_, ioctl(_, VFIO_IOMMU_GET_INFO, _)).WillRepeatedly([](int, unsigned long, void* argument) {
    auto& info = *static_cast<vfio_iommu_type1_info*>(argument);
    info.flags = VFIO_IOMMU_INFO_CAPS;
    if (info.argsz >= sizeof(info) + sizeof(vfio_info_cap_header)) {
      // A capability whose next one is itself.
      auto& header = *reinterpret_cast<vfio_info_cap_header*>(&info + 1);
      header = {.id = 99, .version = 1, .next = sizeof(info)};
      info.cap_offset = sizeof(info);
    }
    info.argsz = sizeof(info) + sizeof(vfio_info_cap_header);
    return 0;
  });
  const auto opened = kGroupWay.open(system_, no_sysfs(), kGroupNodes);
  EXPECT_EQ((*opened)->dma_limits()->ranges, DmaLimits{}.ranges);
}

TEST_F(VfioOpen, LimitsTheRoomThatTheKernelMayAskFor) {
  EXPECT_CALL(system_, ioctl(_, VFIO_IOMMU_GET_INFO, _)).WillRepeatedly([](int, unsigned long, void* argument) {
    static_cast<vfio_iommu_type1_info*>(argument)->argsz = UINT32_MAX;
    return 0;
  });
  const auto opened = kGroupWay.open(system_, no_sysfs(), kGroupNodes);
  EXPECT_EQ((*opened)->dma_limits().error().code, std::errc::message_size);
}

TEST_F(VfioOpen, SaysThatTheCharacterDeviceIsOpenAlready) {
  FakeSysfs alone;
  for (const int error : {EINVAL, EBUSY}) {  // the errors for an open character device and for an open group
    EXPECT_CALL(system_, ioctl(_, VFIO_DEVICE_BIND_IOMMUFD, _))
        .WillOnce(SetErrnoAndReturn(error, -1))
        .RetiresOnSaturation();
    const auto opened = kCdevWay.open(system_, PciSysfs(alone.path()), kCdevNodes);
    EXPECT_EQ(opened.error().code, std::errc::device_or_resource_busy);
    EXPECT_THAT(opened.error().text, HasSubstr("another process"));
  }
}

TEST_F(VfioOpen, NamesTheDevicesThatKeepACharacterDeviceFromBeingUsed) {
  EXPECT_THAT(error_with(kCdevWay, VFIO_DEVICE_BIND_IOMMUFD, EBUSY).text, HasSubstr("0000:3b:00.1 (driver nvme)"));
}

TEST_F(VfioOpen, StopsAskingForRangesIfTheirNumberDoesNotChange) {
  const auto opened = kCdevWay.open(system_, no_sysfs(), kCdevNodes);
  EXPECT_CALL(system_, ioctl(_, IOMMU_IOAS_IOVA_RANGES, _)).WillOnce(SetErrnoAndReturn(EMSGSIZE, -1));
  EXPECT_EQ((*opened)->dma_limits().error().code, std::errc::message_size);
}

class VfTokens : public VfioOpen {
 protected:
  const VfToken token_ = vf_token("00112233-4455-6677-8899-aabbccddeeff").value();

  Error error_with_token(Way way, const VfToken& token) {
    way.nodes.token = token;
    return error_of(way);
  }
};

TEST_F(VfTokens, OpenAVirtualFunction) {
  kernel_.vf_token = token_;
  EXPECT_EQ(token_.bytes[0], 0x00);
  EXPECT_EQ(token_.bytes[15], 0xff);
  EXPECT_EQ(error_with_token(kGroupWay, token_).text, "");
  EXPECT_EQ(error_with_token(kCdevWay, token_).text, "");
}

TEST_F(VfTokens, AreOmittedIfTheKernelDoesNotSupportThem) {
  kernel_.cdev_knows_token = false;
  EXPECT_EQ(error_with_token(kCdevWay, token_).text, "");
}

TEST_F(VfTokens, HaveAnErrorOfTheirOwnIfMissingOrWrong) {
  kernel_.vf_token = token_;
  const VfToken other = vf_token("00112233-4455-6677-8899-aabbccddee00").value();
  std::filesystem::create_directory_symlink("../0000:3a:00.0",
                                            sysfs_.root() / "devices/pci0000:3a/0000:3b:00.0/physfn");
  for (const Way& way : {kGroupWay, kCdevWay}) {
    Error error = error_with_token(way, {});
    EXPECT_EQ(error.code, std::errc::permission_denied);
    EXPECT_THAT(error.text, AllOf(HasSubstr("a virtual function of 0000:3a:00.0"), HasSubstr("a VF token is needed"),
                                  HasSubstr("GBA_VF_TOKEN")));
    error = error_with_token(way, other);
    EXPECT_EQ(error.code, std::errc::permission_denied);
    EXPECT_THAT(error.text, HasSubstr("the VF token is another one"));
  }
}

TEST_F(VfTokens, AreUuidsOrFilesThatHoldOne) {
  const test_support::TempDir folder;
  const std::string file = folder.file("token");
  std::ofstream(file) << token_.text << "\n";
  EXPECT_EQ(vf_token(file.c_str()).value(), token_);
  std::ofstream(file) << "\n  " << token_.text << " # of 0000:3a:00.0\n";
  EXPECT_EQ(vf_token(file.c_str()).value(), token_);
  for (const std::string& text : {std::string("0011"), token_.text + "0", "g" + token_.text.substr(1)}) {
    EXPECT_EQ(vf_token(text.c_str()).error().code, std::errc::invalid_argument) << text;
    std::ofstream(file) << text;
    EXPECT_EQ(vf_token(file.c_str()).error().code, std::errc::invalid_argument) << text;
  }
}

TEST_F(VfTokens, AreNotReadFromFilesThatAreNotText) {
  const test_support::TempDir folder;
  for (const auto& [file, problem] : test_support::make_wrong_files(folder.path())) {
    const auto token = vf_token(file.c_str());
    ASSERT_FALSE(token) << file;
    EXPECT_EQ(token.error().code, std::errc::invalid_argument);
    EXPECT_THAT(token.error().text, AllOf(HasSubstr(file + ": " + problem), HasSubstr("GBA_VF_TOKEN")));
  }
}

}  // namespace
}  // namespace gba::test
