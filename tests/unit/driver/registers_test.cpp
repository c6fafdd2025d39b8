// SPDX-License-Identifier: Apache-2.0
// Registers, config space and commands, on a fake device.
#include "driver/registers.hpp"
#include "base/memfd.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

#include "driver/pci.hpp"
#include "tests/unit/driver/fake_backend.hpp"

namespace gba {
namespace {

using test::FakeBackend;
using test::FakeState;
using testing::HasSubstr;

class RegistersTest : public testing::Test {
 protected:
  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
  FakeBackend backend_{state_};
};

TEST_F(RegistersTest, GoThroughTheBackendIfTheRegionCannotBeMapped) {
  const auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  EXPECT_EQ(control->read<std::uint32_t>(GBA_REG_MAGIC).value(), GBA_MAGIC_VALUE);
  ASSERT_TRUE(control->write<std::uint64_t>(GBA_REG_KICK, 17));
  EXPECT_EQ(state_->control[GBA_REG_KICK], 17U);
  EXPECT_EQ(state_->count("read"), 1U);
}

TEST_F(RegistersTest, AreLoadsAndStoresIfTheRegionCanBeMapped) {
  state_->control_file = base::create_memfd("control", GBA_BAR0_SIZE).value();
  state_->regions[GBA_REGION_CONTROL].mappable = true;
  const auto memory = map_shared(state_->control_file.get(), 0, GBA_BAR0_SIZE, "control").value();
  const auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  MmioRegion(memory.bytes()).word<std::uint64_t>(GBA_REG_CAPS).store(99);
  EXPECT_EQ(control->read<std::uint64_t>(GBA_REG_CAPS).value(), 99U);
  ASSERT_TRUE(control->write<std::uint64_t>(GBA_REG_CMD, 5));
  EXPECT_EQ(MmioRegion(memory.bytes()).word<std::uint64_t>(GBA_REG_CMD).load(), 5U);
  EXPECT_EQ(state_->count("read"), 0U);
  EXPECT_EQ(state_->count("write"), 0U);
}

TEST_F(RegistersTest, RefuseAccessesOutsideAndUnaligned) {
  const auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  EXPECT_EQ(control->read<std::uint64_t>(GBA_BAR0_SIZE).error().code, std::errc::invalid_argument);
  EXPECT_EQ(control->read<std::uint64_t>(4).error().code, std::errc::invalid_argument);
  EXPECT_EQ(control->write<std::uint64_t>(GBA_BAR0_SIZE - 4, 0).error().code, std::errc::invalid_argument);
  EXPECT_EQ(state_->count("read"), 0U);
}

TEST_F(RegistersTest, RefuseARegionThatIsTooSmall) {
  state_->regions[GBA_REGION_CONTROL].size = 4096;
  const auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_FALSE(control);
  EXPECT_EQ(control.error().code, std::errc::no_such_device);
  EXPECT_THAT(control.error().text, HasSubstr("is not a GBA"));
}

TEST_F(RegistersTest, FailAtOnceIfTheDeviceIsLost) {
  const auto control = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE);
  ASSERT_TRUE(control);
  const unsigned calls = state_->calls;
  backend_.declare_lost(Loss::kRemoved);
  EXPECT_EQ(control->read<std::uint32_t>(GBA_REG_MAGIC).error().code, std::errc::no_such_device);
  EXPECT_EQ(state_->calls, calls);
}

const std::vector<PciId> kExpected = expected_pci_ids(nullptr).value();

TEST(PciId, DefaultsToThatOfTheHeader) {
  EXPECT_THAT(
      expected_pci_ids(nullptr).value(),
      testing::ElementsAre(PciId{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID}, PciId{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID_VF},
                           PciId{GBA_PCI_VENDOR_ID, GBA_PCI_DEVICE_ID_SWITCH}));
  EXPECT_THAT(expected_pci_ids("8086:F1c2").value(), testing::ElementsAre(PciId{0x8086, 0xf1c2}));
}

TEST(PciId, RefusesAnOverrideOfAnotherForm) {
  for (const char* text : {"", "8086", "8086-1234", "808:61234", "80866:123", "0x86:1234", "8086:123g", "+086:1234"}) {
    const auto id = expected_pci_ids(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().code, std::errc::invalid_argument);
    EXPECT_THAT(id.error().text, HasSubstr("GBA_PCI_ID"));
  }
}

TEST_F(RegistersTest, ConfigSpaceSetsCommandBitsAndKeepsTheOthers) {
  auto config = PciConfig::open(backend_, kExpected);
  ASSERT_TRUE(config);
  ASSERT_TRUE(config->enable_memory());
  EXPECT_EQ(state_->config[0x04], 0x0102U);
  ASSERT_TRUE(config->enable_bus_master());
  EXPECT_EQ(state_->config[0x04], 0x0106U);
}

TEST_F(RegistersTest, ConfigSpaceOfAnotherDeviceIsRefusedAndNotWritten) {
  state_->config[0x02] = 0x1234;
  const auto config = PciConfig::open(backend_, kExpected);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, std::errc::no_such_device);
  EXPECT_THAT(config.error().text, HasSubstr("its PCI id is 1eaf:1234, not 1eaf:0b01 or 1eaf:0b02 or 1eaf:0b00"));
  EXPECT_EQ(state_->count("write"), 0U);
}

class CommandsTest : public RegistersTest {
 protected:
  Result<std::uint64_t> run(const Command& command) { return commands_.run(command, "try it"); }

  Registers control_ = Registers::open(backend_, GBA_REGION_CONTROL, GBA_BAR0_SIZE).value();
  Commands commands_{backend_, control_};
};

TEST_F(CommandsTest, PutEveryFieldInItsPlaceAndReturnTheResult) {
  EXPECT_EQ(run({.opcode = GBA_CMD_ALLOC}).value(), state_->alloc_result);
  ASSERT_TRUE(run({.opcode = GBA_CMD_JOIN, .group = 31, .member = 707, .key = 0x89abcdef}));
  EXPECT_EQ(state_->commands, (std::vector<std::uint64_t>{1, 0x89abcdef02c31f03}));
}

TEST_F(CommandsTest, WaitWhileTheDeviceIsBusy) {
  state_->busy_reads = 3;
  EXPECT_TRUE(run({.opcode = GBA_CMD_LEAVE}));
  EXPECT_EQ(state_->busy_reads, 0U);
}

TEST_F(CommandsTest, GiveUpOnADeviceThatStaysBusy) {
  state_->busy_reads = 1U << 30;
  Commands commands(backend_, control_, std::chrono::milliseconds{20});
  EXPECT_EQ(commands.run({.opcode = GBA_CMD_LEAVE}, "leave").error().code, code_of(Loss::kSilent));
  EXPECT_EQ(backend_.loss(), Loss::kSilent);
}

TEST_F(CommandsTest, TakeAllOnesForALostDevice) {
  state_->command_status[GBA_CMD_LEAVE] = GBA_ALL_ONES;
  const auto result = run({.opcode = GBA_CMD_LEAVE});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, std::errc::no_such_device);
  EXPECT_THAT(result.error().text, HasSubstr("all ones"));
  EXPECT_TRUE(backend_.lost());
}

struct Answer {
  std::uint64_t error;
  std::errc code;
  const char* text;
};

class CommandErrors : public CommandsTest, public testing::WithParamInterface<Answer> {};

TEST_P(CommandErrors, HaveTheirErrnoAndText) {
  state_->command_status[GBA_CMD_JOIN] = GBA_FIELD_PUT(GBA_CMD_STATUS_ERROR, GetParam().error);
  const auto result = run({.opcode = GBA_CMD_JOIN});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, GetParam().code);
  EXPECT_THAT(result.error().text, HasSubstr("gba: fake:0: cannot try it: "));
  EXPECT_THAT(result.error().text, HasSubstr(GetParam().text));
  EXPECT_FALSE(backend_.lost());
}

INSTANTIATE_TEST_SUITE_P(
    All, CommandErrors,
    testing::Values(Answer{GBA_CMD_ERROR_OPCODE, std::errc::operation_not_supported, "does not know"},
                    Answer{GBA_CMD_ERROR_GROUP_LIMIT, std::errc{EDQUOT}, "as many groups as it may have"},
                    Answer{GBA_CMD_ERROR_NO_FREE_GROUP, std::errc::no_space_on_device, "all groups"},
                    Answer{GBA_CMD_ERROR_GROUP, std::errc::no_such_file_or_directory, "no such group"},
                    Answer{GBA_CMD_ERROR_MEMBER, std::errc::invalid_argument, "no such member"},
                    Answer{GBA_CMD_ERROR_MEMBER_TAKEN, std::errc::address_in_use, "another port"},
                    Answer{GBA_CMD_ERROR_ALREADY_JOINED, std::errc::connection_already_in_progress, "already"},
                    Answer{GBA_CMD_ERROR_KEY, std::errc::permission_denied, "key is wrong"},
                    Answer{GBA_CMD_ERROR_LOCKED_OUT, std::errc::permission_denied, "locked out"},
                    Answer{GBA_CMD_ERROR_NOT_OWNER, std::errc::operation_not_permitted, "another port owns"},
                    Answer{GBA_CMD_ERROR_NOT_JOINED, std::errc::not_connected, "not a member"},
                    Answer{GBA_CMD_ERROR_NOT_PRIVILEGED, std::errc::operation_not_permitted, "not privileged"},
                    Answer{200, std::errc::bad_message, "unknown error code"}));

}  // namespace
}  // namespace gba
