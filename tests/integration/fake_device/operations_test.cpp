// SPDX-License-Identifier: Apache-2.0
// What the command line asks for: sockets, their rights, the privileged port, the kind of device.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "uapi/gba_switch_regs.h"

namespace {

using raw::Client;
using raw::FakeDevice;
using raw::Port;
using ::testing::HasSubstr;

constexpr unsigned kPorts = 3;

// A base of its own, so that it is there before the device that is started with its name.
struct AdminFolder {
  test_support::TempDir admin_folder;
};

class Operations : private AdminFolder, public FakeDevice {
 protected:
  explicit Operations(std::vector<std::string> options = {}) : FakeDevice(with_admin(std::move(options))) {}
  [[nodiscard]] std::string admin_path() const { return admin_folder.file("admin.sock"); }

 private:
  [[nodiscard]] std::vector<std::string> with_admin(std::vector<std::string> options) const {
    options.insert(options.end(), {"--admin-socket", admin_path()});
    return options;
  }
};

unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
}

class Admin : public Operations {
 protected:
  Admin() : Operations({"--ports", std::to_string(kPorts)}) {}
};

TEST_F(Admin, IsThePortPastTheOrdinaryOnes) {
  Port admin(admin_path());
  Port first(path());
  EXPECT_EQ(admin.read(GBA_REG_PORT_ID, 4), kPorts);
  EXPECT_EQ(first.read(GBA_REG_PORT_ID, 4), 0U);
}

TEST_F(Admin, IsOneAtATime) {
  {
    Port admin(admin_path());
    Client second(admin_path());
    EXPECT_EQ(second.version().error(), EBUSY);
  }
  device().wait_for_output("closed", test_support::Seconds(20));
  EXPECT_EQ(Port(admin_path()).read(GBA_REG_PORT_ID, 4), kPorts);
}

TEST_F(Admin, AloneResetsTheDevice) {
  Port admin(admin_path());
  Port port(path());
  const auto group = port.make_group(1);
  port.join(group, 0);
  port.write(GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  EXPECT_EQ(port.flag(group), 0U);
  admin.write(GBA_REG_DEV_CONTROL, GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, port.wait_flag(group, 0)), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(admin.read(GBA_REG_COUNTER_RESETS), 1U);
}

TEST_F(Admin, ReclaimsAGroupWhoseOwnerIsGone) {
  Port admin(admin_path());
  Port member(path());
  const auto group = [&] {
    Port owner(path());
    const auto made = owner.make_group(1);
    member.join(made, 0);
    return made;
  }();
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_CODE, member.wait_flag(group, 0)), unsigned{GBA_ERROR_LEAVE});
  EXPECT_EQ(member.command(GBA_CMD_RECLAIM, group.id), unsigned{GBA_CMD_ERROR_NOT_PRIVILEGED});
  EXPECT_EQ(admin.command(GBA_CMD_RECLAIM, group.id), unsigned{GBA_CMD_OK});
  EXPECT_EQ(member.command(GBA_CMD_LEAVE, group.id), unsigned{GBA_CMD_ERROR_GROUP}) << "it is free";
}

TEST_F(Admin, SocketsGoWithTheServer) {
  ASSERT_EQ(::access(admin_path().c_str(), F_OK), 0);
  device().signal(SIGTERM);
  const auto exit = device().wait(test_support::Seconds(20));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_NE(::access(path().c_str(), F_OK), 0);
  EXPECT_NE(::access(admin_path().c_str(), F_OK), 0);
}

class SharedSocket : public Operations {
 protected:
  SharedSocket() : Operations({"--mode", "0660"}) {}
};

TEST_F(SharedSocket, HasTheModeThatWasAskedForAndThePrivilegedOneHasNot) {
  EXPECT_EQ(mode_of(path()), 0660U);
  EXPECT_EQ(mode_of(admin_path()), 0600U);
}

class SwitchDevice : public Operations {
 protected:
  SwitchDevice() : Operations({"--profile", "switch"}) {}
};

TEST_F(SwitchDevice, IsFoundByItsPciIdAndHasItsVectors) {
  EXPECT_THAT(device().output(), HasSubstr("256 groups x 128 members, 128 ports"));
  Port port(path());
  EXPECT_EQ(port.read(0x00, 4, GBA_REGION_CONFIG), GBA_PCI_VENDOR_ID | GBA_PCI_DEVICE_ID_SWITCH << 16);
  EXPECT_EQ(port.read(0x42, 2, GBA_REGION_CONFIG) & 0x7ff, GBA_SWITCH_MSIX_VECTORS - 1);
  const vfio_user_irq_info info{.argsz = sizeof info, .flags = 0, .index = GBA_IRQ_MSIX, .count = 0};
  const auto reply = port.client().call(VFIO_USER_DEVICE_GET_IRQ_INFO, raw::bytes_of(info));
  EXPECT_EQ(reply.as<vfio_user_irq_info>().count, GBA_SWITCH_MSIX_VECTORS);
}

TEST_F(SwitchDevice, ReleasesTheMembersOfItsLastGroup) {
  constexpr unsigned kLast = GBA_SWITCH_MAX_GROUPS - 1;
  Port first(path());
  Port second(path());
  while (first.command(GBA_CMD_ALLOC) == GBA_CMD_OK && GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, first.result()) != kLast) {
  }
  const Port::Group group{.id = kLast, .key = static_cast<std::uint32_t>(first.result() >> GBA_CMD_RESULT_KEY_SHIFT)};
  const auto at = [](std::uint64_t offset) { return GBA_SWITCH_GROUP_BASE(kLast) + offset; };
  first.write(at(GBA_SWITCH_MEMBER_COUNT), 2);
  first.write(at(GBA_SWITCH_MEMBER_MASK), 3);
  ASSERT_EQ(first.command(GBA_CMD_JOIN, kLast, 0, group.key), unsigned{GBA_CMD_OK});
  ASSERT_EQ(second.command(GBA_CMD_JOIN, kLast, 1, group.key), unsigned{GBA_CMD_OK});
  for (Port* const port : {&first, &second}) {
    constexpr std::uint64_t kAllFlags = 0x200000;
    ASSERT_EQ(port->map_dma(kAllFlags, GBA_BAR4_SIZE, 0, port->flag_fd()), 0);
    port->write(at(GBA_SWITCH_RELEASE_ADDR), kAllFlags + kLast * GBA_FLAG_STRIDE);
  }
  first.write(at(GBA_SWITCH_CONTROL), GBA_CONTROL_ENABLE | GBA_CONTROL_ARM);
  EXPECT_EQ(second.read(at(GBA_SWITCH_LOCAL_MEMBER_ID)), 1U);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    first.arrive(group, 0, round);
    EXPECT_EQ(second.flag(group), round - 1);
    second.arrive(group, 1, round);
    EXPECT_EQ(first.wait_flag(group, round - 1), round);
    EXPECT_EQ(second.wait_flag(group, round - 1), round);
  }
  EXPECT_EQ(first.read(GBA_REG_FAULT), 0U);
}

}  // namespace
