// SPDX-License-Identifier: Apache-2.0
// gba regs: it knows every register of the headers, decodes them, and writes only what it is told to.
#include <gmock/gmock.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>

#include "driver/tool/register_reading.hpp"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/job.hpp"
#include "tests/support/text.hpp"
#include "uapi/gba_switch_regs.h"

namespace tool_test {
namespace {

using testing::HasSubstr;

using Regs = driver_test::BarrierTest;

/// Of the block with this name: its registers by name.
std::map<std::string, Json> registers_of(const Json& result, const std::string& block) {
  std::map<std::string, Json> all;
  for (const auto& entry : result.at("blocks")) {
    if (entry.at("block") == block) {
      for (const auto& reg : entry.at("registers")) {
        all[reg.at("name")] = reg;
      }
    }
  }
  EXPECT_FALSE(all.empty()) << "no " << block << " in " << result;
  return all;
}

std::uint64_t number(const Json& hexadecimal) {
  return std::stoull(hexadecimal.get<std::string>(), nullptr, 16);
}

/// Offset and size of each register.
using Layout = std::map<std::string, std::tuple<std::uint64_t, unsigned>>;

/// The macros `prefix` NAME of a header with their comment, such as "4 RO". Registers without a size have 8 bytes.
Layout declared_in(const std::string& header, const std::string& prefix) {
  std::ifstream file(GBA_SOURCE_DIR "/uapi/" + header);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string macro = "#define " + prefix + R"((\w+) (0x[0-9a-f]+)u +/\* (4|8)?)";
  Layout layout;
  for (const auto& match : test_support::all_matches(text, macro)) {
    layout[match[1]] = {std::stoull(match[2], nullptr, 16), match[3] == "4" ? 4 : 8};
  }
  return layout;
}

Layout shown_in(const std::map<std::string, Json>& registers, std::uint64_t block) {
  Layout layout;
  for (const auto& [name, reg] : registers) {
    layout[name] = {number(reg.at("offset")) - block, reg.at("size").get<unsigned>()};
  }
  return layout;
}

TEST_F(Regs, ShowsEveryRegisterOfTheHeader) {
  const Layout device = declared_in("gba_regs.h", "GBA_REG_");
  EXPECT_EQ(device.size(), 25U);
  EXPECT_EQ(shown_in(registers_of(gba_json({"regs", path()}), "device"), 0), device);
  Layout group = declared_in("gba_regs.h", "GBA_GROUP_");
  EXPECT_EQ(group.size(), 13U);
  EXPECT_EQ(shown_in(registers_of(gba_json({"regs", path(), "--group", "5"}), "group 5"), GBA_GROUP_BASE(5)), group);
}

TEST(SwitchRegs, ShowsEveryRegisterOfTheHeader) {
  const test_support::FakeDevice device({"--profile", "switch"});
  const Json result = gba_json({"regs", device.path(), "--group", "200"});
  EXPECT_EQ(result.at("map"), "switch");
  Layout group = declared_in("gba_switch_regs.h", "GBA_SWITCH_");
  EXPECT_EQ(group.size(), 15U);
  EXPECT_EQ(shown_in(registers_of(result, "group 200"), GBA_SWITCH_GROUP_BASE(200)), group);
}

TEST_F(Regs, DecodesTheDevice) {
  const auto device = registers_of(gba_json({"regs", path()}), "device");
  EXPECT_EQ(number(device.at("MAGIC").at("value")), GBA_MAGIC_VALUE);
  EXPECT_EQ(device.at("CAPS").at("fields").at("GROUPS"), 32);
  EXPECT_EQ(device.at("CAPS").at("fields").at("MEMBERS"), 708);
  EXPECT_EQ(device.at("CAPS").at("fields").at("WAKEUP"), 1);
  EXPECT_EQ(device.at("CAPS").at("access"), "RO");
  EXPECT_EQ(device.at("CMD").at("value"), nullptr) << "it is only written";
  EXPECT_EQ(device.at("CMD_STATUS").at("names").at("ERROR"), "OK");
  const std::string text = gba({"regs", path()}).output;
  EXPECT_THAT(text, testing::ContainsRegex("0x000008 +CAPS +RO +0x[0-9a-f]{16} +what the device has\n"
                                           " +GROUPS +32 +groups of the device\n"));
  EXPECT_THAT(text, testing::ContainsRegex("0x000028 +CMD +WO +\\(write-only\\) +runs a command\n"));
}

TEST_F(Regs, DecodesTheGroupsInUse) {
  const auto device = open();
  const auto handle = alloc(device.get(), 300);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 299);
  gba_group_arrive(member.get(), 1);
  std::map<std::string, Json> group;
  for (int looks = 0; looks < 1000; ++looks) {
    group = registers_of(gba_json({"regs", path()}), "group " + std::to_string(handle.group));
    if (group.at("ARRIVAL_COUNT").at("value") == "0x00000001") {
      break;
    }
  }
  EXPECT_EQ(group.at("ARRIVED_MASK").at("members"), Json::parse("[299]"));
  EXPECT_EQ(group.at("MEMBER_MASK").at("members").size(), 300U);
  EXPECT_EQ(group.at("MEMBER_MASK").at("values").size(), 12U);
  EXPECT_EQ(group.at("CONTROL").at("fields").at("ENABLE"), 1);
  EXPECT_EQ(group.at("STATUS").at("fields").at("ACTIVE"), 1);
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(device.get(), &info), 0);
  EXPECT_EQ(group.at("MEMBER_PORT").at("ports"),
            Json::parse(R"([{"member": 299, "port": )" + std::to_string(info.port) + "}]"));
  const std::string text = gba({"regs", path(), "--group", std::to_string(handle.group)}).output;
  EXPECT_THAT(text, testing::ContainsRegex("MEMBER_MASK\\[12\\] +RW +0-299\n"));
  EXPECT_THAT(text, HasSubstr("member 299: port " + std::to_string(info.port)));
  EXPECT_THAT(text, testing::Not(HasSubstr("MAGIC"))) << "only the group that was asked for";
}

TEST_F(Regs, ReadingIsNoFault) {
  const auto device = open();
  std::uint64_t value = 0;
  for (const auto& [block, name] : {std::pair("device", ""), std::pair("group 3", "3")}) {
    const Json result = *name == '\0' ? gba_json({"regs", path()}) : gba_json({"regs", path(), "--group", name});
    for (const auto& [title, reg] : registers_of(result, block)) {
      for (unsigned word = 0; reg.at("access") != "WO" && word < reg.at("words"); ++word) {
        const auto size = reg.at("size").get<unsigned>();
        const std::uint64_t offset = number(reg.at("offset")) + std::uint64_t{size} * word;
        EXPECT_EQ(gba_device_read_register(device.get(), offset, size, &value), 0) << title << gba_error_text();
      }
    }
  }
  ASSERT_EQ(gba_device_read_register(device.get(), GBA_REG_FAULT, 8, &value), 0) << gba_error_text();
  EXPECT_EQ(value, 0U);
  // The device would have recorded an access with a wrong size.
  ASSERT_EQ(gba_device_read_register(device.get(), GBA_REG_CAPS, 4, &value), 0) << gba_error_text();
  ASSERT_EQ(gba_device_read_register(device.get(), GBA_REG_FAULT, 8, &value), 0) << gba_error_text();
  EXPECT_EQ(value, GBA_FAULT_BIT(GBA_FAULT_BAD_ACCESS));
}

/// The faults of this process's port: those of another process are in the registers of its own port.
TEST_F(Regs, NamesAFaultOnlyIfThereIsOne) {
  const auto device = open();
  gba_device_info info{};
  ASSERT_EQ(gba_device_get_info(device.get(), &info), 0);
  const auto text = [&] { return to_text(tool::read_blocks(device.get(), info, {})->front()); };
  EXPECT_THAT(text(), testing::ContainsRegex("FAULT_INFO +RO +0x0{16}[^\n]*\n +KIND +-\n +GROUP +-\n"));
  EXPECT_THAT(text(), testing::ContainsRegex("FAULT_ADDR +RO +0x0{16} +-; of the first fault"));
  const auto none = registers_of(gba_json({"regs", path()}), "device");
  EXPECT_EQ(none.at("FAULT_INFO").at("names").at("KIND"), nullptr);
  EXPECT_EQ(none.at("FAULT_INFO").at("fields").at("KIND"), 0);
  std::uint64_t value = 0;
  ASSERT_EQ(gba_device_read_register(device.get(), GBA_REG_CAPS, 4, &value), 0) << "with a wrong size: a fault";
  EXPECT_THAT(text(), testing::ContainsRegex("FAULT_INFO [^\n]*\n +KIND +BAD_ACCESS"));
  EXPECT_THAT(text(), testing::ContainsRegex("FAULT_ADDR +RO +0x[0-9a-f]{16} +[0-9]+; of the first fault"));
}

TEST_F(Regs, CallsRefuseWhatIsNotARegister) {
  const auto device = open();
  std::uint64_t value = 0;
  const std::pair<std::uint64_t, std::uint32_t> wrong[] = {
      {0, 2}, {0, 16}, {2, 4}, {4, 8}, {GBA_MSIX_TABLE_OFFSET, 4}, {UINT64_MAX - 7, 8}};
  for (const auto& [offset, size] : wrong) {
    EXPECT_EQ(gba_device_read_register(device.get(), offset, size, &value), -EINVAL) << offset << " " << size;
    EXPECT_EQ(gba_device_write_register(device.get(), offset, size, 0), -EINVAL) << offset << " " << size;
  }
  EXPECT_EQ(gba_device_write_register(device.get(), GBA_REG_PORT_ID, 4, std::uint64_t{1} << 32), -EINVAL);
  EXPECT_EQ(gba_device_read_register(nullptr, 0, 4, &value), -EINVAL);
  EXPECT_EQ(gba_device_read_register(device.get(), 0, 4, nullptr), -EINVAL);
  EXPECT_EQ(gba_device_write_register(nullptr, 0, 4, 0), -EINVAL);
}

TEST_F(Regs, WritesOnlyIfThatIsConfirmed) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  const std::string group = std::to_string(handle.group);
  const auto refused = gba({"regs", path(), "--group", group, "--write", "TIMEOUT=5"});
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("nothing is written: a write can end every barrier"));
  const auto dropped = gba({"regs", path(), "--group", group, "--write", "TIMEOUT=5", "--yes"});
  EXPECT_EQ(dropped.exit.code, 4) << "another port owns the group";
  EXPECT_THAT(dropped.output, HasSubstr("the device dropped the write of 0x0000000000000005"));
  gba_group_status status{};
  ASSERT_EQ(gba_group_get_status(device.get(), handle.group, &status), 0) << gba_error_text();
  EXPECT_EQ(status.timeout_ns, 0U);
}

TEST_F(Regs, SaysWhyAWriteIsWrong) {
  const std::map<std::string, std::string> wrong{
      {"CAPS=1", "CAPS is read-only"}, {"NONSENSE=1", "no register NONSENSE"},
      {"TIMEOUT=1", "--group N"},      {"FAULT", "NAME=VALUE"},
      {"FAULT=", "NAME=VALUE"},        {"FAULT=1x", "NAME=VALUE"},
      {"FAULT[x]=1", "NAME=VALUE"},    {"FAULT[1]=1", "FAULT has 1 word"}};
  for (const auto& [write, text] : wrong) {
    const auto outcome = gba({"regs", path(), "--write", write, "--yes"});
    EXPECT_EQ(outcome.exit.code, 2) << write;
    EXPECT_THAT(outcome.output, HasSubstr(text)) << write;
  }
  EXPECT_EQ(gba({"regs", path(), "--group", "32"}).exit.code, 2);
}

TEST(AdminRegs, WritesWhatThePrivilegedPortMayWrite) {
  const test_support::TempDir folder;
  const std::string admin = folder.file("admin.sock");
  const test_support::FakeDevice device({"--admin-socket", admin});
  gba_device* opened = nullptr;
  ASSERT_EQ(gba_open(device.path().c_str(), &opened), 0) << gba_error_text();
  gba_group_handle handle{};
  ASSERT_EQ(gba_group_alloc(opened, 2, 0, &handle), 0) << gba_error_text();
  const auto written = gba({"regs", admin, "--write", "DEV_CONTROL=0x1", "--yes"});
  EXPECT_EQ(written.exit.code, 0) << written.output;
  EXPECT_THAT(written.output, HasSubstr("DEV_CONTROL: 0x0000000000000000 -> 0x0000000000000000\n"));
  const auto group = registers_of(gba_json({"regs", device.path()}), "group " + std::to_string(handle.group));
  EXPECT_EQ(group.at("ERROR_CODE").at("names").at("CODE"), "RESET");
  gba_close(opened);
}

}  // namespace
}  // namespace tool_test
