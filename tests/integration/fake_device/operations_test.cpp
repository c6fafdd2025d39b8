// SPDX-License-Identifier: Apache-2.0
// Command-line options: the sockets, their permissions, the privileged port, the device profile.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/integration/fake_device/device_fixture.hpp"
#include "tests/support/json.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/text.hpp"
#include "uapi/gba_switch_regs.h"

namespace {

using raw::Client;
using raw::DeviceTest;
using raw::Port;
using ::testing::HasSubstr;

constexpr unsigned kPorts = 3;

// A base class, so that the folder exists before the device starts.
struct AdminFolder {
  test_support::TempDir admin_folder;
};

class Operations : private AdminFolder, public DeviceTest {
 protected:
  explicit Operations(std::vector<std::string> options = {}) : DeviceTest(with_admin(std::move(options))) {}
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

TEST_F(Admin, IsThePortAfterTheOrdinaryOnes) {
  Port admin(admin_path());
  Port first(path());
  EXPECT_EQ(admin.read(GBA_REG_PORT_ID, 4), kPorts);
  EXPECT_EQ(first.read(GBA_REG_PORT_ID, 4), 0U);
}

// Otherwise the kernel makes the table larger while clients send descriptors, which takes tens of milliseconds.
TEST_F(Admin, HasATableForTheDescriptorsOfAllMembersFromTheStart) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GE(file_table(), static_cast<long>(std::min<rlim_t>(limit.rlim_max, 65536)));
}

TEST_F(Admin, AcceptsOneClientAtATime) {
  {
    Port admin(admin_path());
    Client second(admin_path());
    EXPECT_EQ(second.version().error(), EBUSY);
  }
  device().wait_for_output("closed", test_support::Seconds(20));
  EXPECT_EQ(Port(admin_path()).read(GBA_REG_PORT_ID, 4), kPorts);
}

TEST_F(Admin, SetsTheLimitOfGroups) {
  Port admin(admin_path());
  Port port(path());
  EXPECT_EQ(port.read(GBA_REG_GROUP_LIMIT), 8U);
  admin.write(GBA_REG_GROUP_LIMIT, 1);
  EXPECT_EQ(port.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_OK});
  EXPECT_EQ(port.command(GBA_CMD_ALLOC), unsigned{GBA_CMD_ERROR_GROUP_LIMIT});
  port.write(GBA_REG_GROUP_LIMIT, 2);
  EXPECT_EQ(port.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED));
  EXPECT_EQ(admin.read(GBA_REG_GROUP_LIMIT), 1U);
}

// A group that has outlived its owner counts for the owner's port, and not for the next client (uapi rule 37).
TEST_F(Admin, LetsAClientHaveAPortForWhichNoGroupCounts) {
  auto owner = std::make_unique<Port>(path());
  Port member(path());
  const auto group = owner->make_group(2);
  owner->join(group, 0);
  member.join(group, 1);
  owner.reset();
  EXPECT_NE(GBA_FIELD_GET(GBA_FLAG_ERROR, member.wait_flag(group, 0)), 0U);
  auto next = std::make_unique<Port>(path());
  EXPECT_EQ(next->read(GBA_REG_PORT_ID, 4), 2U);
  EXPECT_EQ(next->read(GBA_REG_GROUPS_HELD), 0U);
  Port last(path());
  EXPECT_EQ(last.read(GBA_REG_PORT_ID, 4), 0U) << "there is no other";
  EXPECT_EQ(last.read(GBA_REG_GROUPS_HELD), 1U);
  EXPECT_EQ(member.command(GBA_CMD_LEAVE, group.id), unsigned{GBA_CMD_OK});
  EXPECT_EQ(last.read(GBA_REG_GROUPS_HELD), 0U);
}

TEST_F(Admin, IsTheOnlyPortThatResetsTheDevice) {
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

TEST_F(Admin, SocketsAreRemovedByTheServer) {
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

TEST_F(SharedSocket, HasTheRequestedModeUnlikeThePrivilegedOne) {
  EXPECT_EQ(mode_of(path()), 0660U);
  EXPECT_EQ(mode_of(admin_path()), 0600U);
}

class SwitchDevice : public Operations {
 protected:
  SwitchDevice() : Operations({"--profile", "switch", "--group-limit", "256"}) {}
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
  Port first(path(), raw::kVersion, {.size = GBA_BAR4_SIZE});
  Port second(path(), raw::kVersion, {.size = GBA_BAR4_SIZE});
  while (first.command(GBA_CMD_ALLOC) == GBA_CMD_OK && GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, first.result()) != kLast) {
  }
  const Port::Group group{.id = kLast, .key = static_cast<std::uint32_t>(first.result() >> GBA_CMD_RESULT_KEY_SHIFT)};
  const auto at = [](std::uint64_t offset) { return GBA_SWITCH_GROUP_BASE(kLast) + offset; };
  first.write(at(GBA_SWITCH_MEMBER_COUNT), 2);
  first.write(at(GBA_SWITCH_MEMBER_MASK), 3);
  ASSERT_EQ(first.command(GBA_CMD_JOIN, kLast, 0, group.key), unsigned{GBA_CMD_OK});
  ASSERT_EQ(second.command(GBA_CMD_JOIN, kLast, 1, group.key), unsigned{GBA_CMD_OK});
  for (Port* const port : {&first, &second}) {
    port->write(at(GBA_SWITCH_RELEASE_ADDR), raw::kFlagIova + std::uint64_t{kLast} * GBA_FLAG_STRIDE);
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

/// The socket that a service manager listens on.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  std::string receive() {
    std::array<char, 256> text{};
    const auto size = ::recv(socket_.get(), text.data(), text.size(), 0);
    return {text.data(), size > 0 ? static_cast<std::size_t>(size) : 0};
  }

 private:
  raw::Fd socket_;
};

TEST(ServiceManager, IsNotifiedWhenTheDeviceServesAndWhenItStops) {
  const test_support::TempDir folder;
  NotifySocket manager(folder.file("notify"));
  test_support::Process device({test_support::program("gba-fake-device"), "--socket", folder.file("s")},
                               {"NOTIFY_SOCKET=" + folder.file("notify")});
  EXPECT_EQ(manager.receive(), "READY=1");
  EXPECT_EQ(Port(folder.file("s")).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE) << "it does serve";
  device.signal(SIGTERM);
  EXPECT_EQ(manager.receive(), "STOPPING=1");
  EXPECT_TRUE(device.wait(test_support::Seconds(20)));
}

TEST(ServiceManager, GetsWatchdogMessages) {
  const test_support::TempDir folder;
  NotifySocket manager(folder.file("notify"));
  test_support::Process device({test_support::program("gba-fake-device"), "--socket", folder.file("s")},
                               {"NOTIFY_SOCKET=" + folder.file("notify"), "WATCHDOG_USEC=300000"});
  EXPECT_EQ(manager.receive(), "READY=1");
  for (int count = 0; count < 5; ++count) {
    EXPECT_EQ(manager.receive(), "WATCHDOG=1") << "it sleeps meanwhile";
  }
}

class JsonDevice : public Operations {
 protected:
  JsonDevice() : Operations({"--log-json", "--stats", "1"}) {}
  /// Every line but the first, which says that the device is ready, must be an object.
  std::vector<test_support::Json> lines() {
    std::istringstream text(device().output());
    std::vector<test_support::Json> objects;
    for (std::string line; std::getline(text, line) && !text.eof();) {
      if (line.find("ready on") == std::string::npos) {
        objects.push_back(test_support::Json::parse(line));
      }
    }
    return objects;
  }
};

TEST_F(JsonDevice, LogsOneObjectPerLine) {
  {
    Port port(path());
    const auto group = port.make_group(1);
    port.join(group, 0);
    for (std::uint64_t round = 1; round <= 5; ++round) {
      port.arrive(group, 0, round);
      ASSERT_EQ(port.wait_flag(group, round - 1), round);
    }
    ASSERT_TRUE(device().wait_for_output("\"releases\":5", test_support::Seconds(20))) << device().output();
  }
  ASSERT_TRUE(device().wait_for_output("closed", test_support::Seconds(20)));
  bool opened = false;
  bool counted = false;
  for (const auto& line : lines()) {
    EXPECT_THAT(line.at("time"), ::testing::ResultOf(
                                     [](const std::string& time) {
                                       return test_support::matches(time, R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
                                     },
                                     true));
    if (line.contains("message")) {
      opened |= line.at("level") == "info" && line.value("port", -1) == 0 &&
                line.at("message").get<std::string>().find("opened by process " + std::to_string(::getpid())) == 0;
    } else {
      counted |= line.at("releases") == 5 && line.at("clients") == 1 && line.at("groups") == 1;
    }
  }
  EXPECT_TRUE(opened) << device().output();
  EXPECT_TRUE(counted) << device().output();
}

TEST(CommandLine, SaysWhichUnitATimeLacks) {
  const auto program = test_support::program("gba-fake-device");
  const auto wrong =
      test_support::run({program, "--socket", "@x", "--fault", "latency:time=2"}, {}, test_support::Seconds(20)).output;
  EXPECT_THAT(wrong, ::testing::StartsWith("gba-fake-device: --fault: "));
  EXPECT_THAT(wrong, ::testing::HasSubstr("\"time=2\" has no unit: write time=2us, or ns, ms or s"));
}

TEST(Manual, NamesEveryOptionAndEveryFaultAndNoOther) {
  const auto program = test_support::program("gba-fake-device");
  const auto help = test_support::run({program, "--help"}, {}, test_support::Seconds(20)).output;
  const auto wrong =
      test_support::run({program, "--socket", "@x", "--fault", "?"}, {}, test_support::Seconds(20)).output;
  const auto text = test_support::manual(GBA_MANUAL);
  const auto options = test_support::options_in_help(help);
  EXPECT_GT(options.size(), 10U);
  EXPECT_EQ(test_support::options_in_manual(text), options);
  const auto faults =
      test_support::all_of(wrong.substr(wrong.find("there are")), R"(([a-z]+-[a-z]+|latency|fatal|remove))");
  EXPECT_EQ(faults.size(), 17U);
  for (const auto& fault : faults) {
    EXPECT_THAT(text, ::testing::ContainsRegex("\\.BR? .*" + fault)) << fault;
  }
}

std::string unit_file() {
  std::ifstream file(GBA_UNIT);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Clients decide how much the device stores for them.
TEST(Unit, LimitsTheMemoryOfTheDevice) {
  const auto limits = test_support::all_of(unit_file(), R"(\n(MemoryMax=[0-9]+[MG])\n)");
  EXPECT_THAT(limits, ::testing::ElementsAre("MemoryMax=2G"));
}

TEST(Unit, IsValidForSystemd) {
  if (std::system("command -v systemd-analyze >/dev/null") != 0) {
    GTEST_SKIP() << "systemd-analyze is not installed";
  }
  // With this build's program in place of the installed one.
  const test_support::TempDir folder;
  std::string text = unit_file();
  const auto program = test_support::program("gba-fake-device");
  text = test_support::replace_all(text, "ExecStart=[^ ]*", "ExecStart=" + program);
  text = test_support::replace_all(text, "Documentation=.*", "");
  std::ofstream(folder.file("gba-fake-device.service")) << text;
  const auto verified = test_support::run(
      {"/usr/bin/env", "systemd-analyze", "verify", "--man=no", folder.file("gba-fake-device.service")}, {},
      test_support::Seconds(60));
  EXPECT_EQ(verified.exit.code, 0) << verified.output;
  EXPECT_EQ(verified.output, "");
}

}  // namespace
