// SPDX-License-Identifier: Apache-2.0
#include "driver/device.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "base/usable_processors.hpp"
#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr unsigned kAlloc = GBA_CMD_ALLOC;
constexpr unsigned kFree = GBA_CMD_FREE;
constexpr unsigned kJoin = GBA_CMD_JOIN;
constexpr unsigned kLeave = GBA_CMD_LEAVE;

class DeviceTest : public DeviceFixture {
 protected:
  Error open_error() {
    auto device = open_fake(state_);
    return device ? Error{} : device.error();
  }
  /// The opcodes of the commands that the device got.
  std::vector<unsigned> opcodes() const {
    std::vector<unsigned> opcodes;
    for (const std::uint64_t word : state_->commands) {
      opcodes.push_back(static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_OPCODE, word)));
    }
    return opcodes;
  }
  std::uint64_t group_register(std::uint64_t offset) { return state_->control[GBA_GROUP_BASE(kGroup) + offset]; }
};

TEST_F(DeviceTest, InfoReportsWhatTheDeviceSaysOfItself) {
  open();
  const gba_device_info info = device_->info();
  EXPECT_STREQ(info.backend, "fake");
  EXPECT_STREQ(info.path, "fake:0");
  EXPECT_EQ(info.version, GBA_VERSION_MAJOR << 16);
  EXPECT_EQ(info.port, 5U);
  EXPECT_EQ(info.groups, 32U);
  EXPECT_EQ(info.members, 708U);
  EXPECT_EQ(info.is_process, 1U);
  EXPECT_EQ(info.features & GBA_CAPS_NOTIFY, GBA_CAPS_NOTIFY);
}

TEST_F(DeviceTest, EnablesMemoryAccessAndBusMastering) {
  open();
  EXPECT_EQ(state_->config[0x04] & 0x6U, 0x6U);
}

TEST_F(DeviceTest, DoesNotMakeAnotherDeviceBusMaster) {
  state_->control[GBA_REG_MAGIC] = 0x12345678;
  const Error error = open_error();
  EXPECT_EQ(error.code, std::errc::no_such_device);
  EXPECT_THAT(error.text, HasSubstr("fake:0 is not a GBA: its MAGIC register reads"));
  EXPECT_EQ(state_->config[0x04] & 0x4U, 0U);
}

TEST_F(DeviceTest, RefusesAnotherMajorVersion) {
  state_->control[GBA_REG_VERSION] = GBA_FIELD_PUT(GBA_VERSION_MAJOR_FIELD, 2);
  const Error error = open_error();
  EXPECT_EQ(error.code, std::errc::protocol_error);
  EXPECT_THAT(error.text, HasSubstr("its registers have version 2, this library knows version 1"));
}

TEST_F(DeviceTest, AcceptsALaterMinorVersion) {
  state_->control[GBA_REG_VERSION] += 5;
  EXPECT_EQ(open_error().text, "");
}

TEST_F(DeviceTest, RefusesDimensionsBeyondTheRegisterMap) {
  for (const auto& [groups, members] : {std::pair{0U, 708U}, {33U, 708U}, {32U, 0U}, {32U, 709U}}) {
    state_->control[GBA_REG_CAPS] = GBA_FIELD_PUT(GBA_CAPS_GROUPS, groups) | GBA_FIELD_PUT(GBA_CAPS_MEMBERS, members);
    EXPECT_EQ(open_error().code, std::errc::no_such_device) << groups << " x " << members;
  }
}

TEST_F(DeviceTest, RefusesADeviceThatReadsAllOnes) {
  state_->control[GBA_REG_CAPS] = GBA_ALL_ONES;
  EXPECT_EQ(open_error().code, std::errc::no_such_device);
}

TEST_F(DeviceTest, RefusesADeviceWithAFatalError) {
  state_->control[GBA_REG_DEV_STATUS] |= GBA_DEV_STATUS_FATAL;
  const Error error = open_error();
  EXPECT_EQ(error.code, std::errc::io_error);
  EXPECT_THAT(error.text, HasSubstr("fatal error (FATAL)"));
  EXPECT_THAT(error.text, HasSubstr("gba reset --yes"));
}

TEST_F(DeviceTest, OpensADeviceWithAFatalErrorForReset) {
  state_->control[GBA_REG_DEV_STATUS] |= GBA_DEV_STATUS_FATAL;
  state_->privileged = true;
  device_ = Device::open(std::make_unique<FakeBackend>(state_), kGbaIds, FlagPlace::kHost, true).value();
  EXPECT_EQ(device_->check_condition().error().code, std::errc::io_error);
  state_->control[GBA_REG_DEV_STATUS] &= ~GBA_DEV_STATUS_FATAL;
  EXPECT_TRUE(device_->check_condition());
}

TEST_F(DeviceTest, SaysThatItsLinkIsDown) {
  open();
  EXPECT_TRUE(device_->check_condition());
  state_->control[GBA_REG_DEV_STATUS] &= ~GBA_DEV_STATUS_LINK_UP;
  const Error error = device_->check_condition().error();
  EXPECT_EQ(error.code, std::errc::network_down);
  EXPECT_EQ(error.text, "gba: fake:0: the link of this port, 5, is down");
}

TEST_F(DeviceTest, FindsAPulledOutDeviceLostWhenItIsChecked) {
  open();
  state_->removed = true;
  EXPECT_EQ(device_->check_condition().error().code, std::errc::no_such_device);
  EXPECT_EQ(device_->backend().loss(), Loss::kRemoved);
}

TEST_F(DeviceTest, RefusesADeviceWithoutMappableDoorbells) {
  state_->regions[GBA_REGION_DOORBELLS].mappable = false;
  EXPECT_THAT(open_error().text, HasSubstr("its doorbells cannot be mapped"));
  state_->regions[GBA_REGION_DOORBELLS] = {.size = 4096, .mappable = true};
  EXPECT_THAT(open_error().text, HasSubstr("its doorbells cannot be mapped"));
}

TEST_F(DeviceTest, OpenReportsTheFailureOfEachStep) {
  for (unsigned call = 0;; ++call) {
    state_ = std::make_shared<FakeState>();
    state_->failing_call = call;
    const auto device = open_fake(state_);
    // All calls have succeeded. This is checked while the device is open, because closing it makes more calls.
    if (state_->calls <= call) {
      EXPECT_TRUE(device);
      EXPECT_GT(call, 10U);
      return;
    }
    ASSERT_FALSE(device) << call;
    EXPECT_EQ(device.error().code, std::errc::io_error) << call;
    EXPECT_THAT(device.error().text, HasSubstr("fake: failed in ")) << call;
  }
}

TEST_F(DeviceTest, ReadsEveryCounterFromItsRegister) {
  open();
  for (std::uint64_t i = 0; i < 10; ++i) {
    state_->control[GBA_REG_COUNTER_ARRIVALS + 8 * i] = 100 + i;
  }
  const auto counters = device_->counters();
  ASSERT_TRUE(counters);
  EXPECT_THAT(
      (std::array{counters->arrivals, counters->releases, counters->stale, counters->rejected, counters->dma_faults,
                  counters->timeouts, counters->resets, counters->errors, counters->interrupts, counters->wakeups}),
      ElementsAre(100, 101, 102, 103, 104, 105, 106, 107, 108, 109));
}

TEST_F(DeviceTest, SpinsAsOneOfTheMembersAndADeviceProcessOnThisMachine) {
  open();
  const unsigned processors = base::usable_processors();
  for (const std::uint32_t members : {1U, processors, unsigned{GBA_MAX_MEMBERS}}) {
    EXPECT_EQ(device_->spin(members).spins, spin_policy(processors, members + 1).spins) << members;
  }
}

TEST_F(DeviceTest, SpinsAsIfAloneWithHardware) {
  state_->control[GBA_REG_CAPS] &= ~GBA_CAPS_WAKEUP;
  open();
  EXPECT_EQ(device_->spin(GBA_MAX_MEMBERS).spins, spin_policy(base::usable_processors(), 1).spins);
}

TEST_F(DeviceTest, AllocConfiguresTheGroup) {
  open();
  const auto handle = device_->alloc(65, 41);
  ASSERT_TRUE(handle);
  EXPECT_EQ(handle->group, kGroup);
  EXPECT_EQ(handle->key, 0xbeefU);
  EXPECT_EQ(handle->member_count, 65U);
  EXPECT_EQ(handle->sequence, 41U);
  EXPECT_EQ(group_register(GBA_GROUP_MEMBER_COUNT), 65U);
  EXPECT_EQ(group_register(GBA_GROUP_MEMBER_MASK), UINT64_MAX);
  EXPECT_EQ(group_register(GBA_GROUP_MEMBER_MASK + 8), 1U);
  EXPECT_EQ(group_register(GBA_GROUP_MEMBER_MASK + 16), 0U);
  EXPECT_EQ(group_register(GBA_GROUP_SEQUENCE), 41U);
  EXPECT_EQ(group_register(GBA_GROUP_CONTROL), 0U);
}

TEST_F(DeviceTest, AllocAcceptsUpToAllMembersAndSequencesBelowTheLimit) {
  open();
  ASSERT_TRUE(device_->alloc(708, 0));
  EXPECT_EQ(group_register(GBA_GROUP_MEMBER_MASK + 88), (std::uint64_t{1} << 4) - 1);
  EXPECT_EQ(device_->alloc(709, 0).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device_->alloc(0, 0).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device_->alloc(1, std::uint64_t{1} << 56).error().code, std::errc::invalid_argument);
  EXPECT_EQ(device_->alloc(1, (std::uint64_t{1} << 56) - 1).error().code, std::errc::invalid_argument)
      << "the first barrier would look released already";
  EXPECT_EQ(device_->alloc(1, FlagMemory::kPoison - 1).error().code, std::errc::invalid_argument);
  EXPECT_TRUE(device_->alloc(1, (std::uint64_t{1} << 54) - 1));
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kAlloc));
}

TEST_F(DeviceTest, AllocSaysThatAllGroupsAreTaken) {
  open();
  const std::uint64_t error = GBA_CMD_ERROR_NO_FREE_GROUP;
  state_->command_status[GBA_CMD_ALLOC] = GBA_FIELD_PUT(GBA_CMD_STATUS_ERROR, error);
  const auto handle = device_->alloc(2, 0);
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, std::errc::no_space_on_device);
  EXPECT_EQ(handle.error().text, "gba: fake:0: cannot allocate a group: all groups of the device are taken");
}

TEST_F(DeviceTest, AllocSaysHowManyGroupsThePortMayHave) {
  state_->control[GBA_REG_CAPS] |= GBA_CAPS_GROUP_LIMIT;
  state_->control[GBA_REG_GROUP_LIMIT] = 8;
  state_->control[GBA_REG_GROUPS_HELD] = 9;
  open();
  const std::uint64_t at_the_limit = GBA_CMD_ERROR_GROUP_LIMIT;
  state_->command_status[GBA_CMD_ALLOC] = GBA_FIELD_PUT(GBA_CMD_STATUS_ERROR, at_the_limit);
  const Error error = device_->alloc(2, 0).error();
  EXPECT_EQ(error.code, std::errc{EDQUOT});
  EXPECT_EQ(error.text,
            "gba: fake:0: cannot allocate a group: this port has as many groups as it may have; gba limit raises that, "
            "through the privileged port (9 of 8)");
}

TEST_F(DeviceTest, HasNoLimitOfGroupsIfItsCapabilitiesTellNone) {
  state_->control[GBA_REG_VERSION] |= 2;
  state_->control[GBA_REG_GROUP_LIMIT] = 8;
  open();
  EXPECT_EQ(device_->group_limit().value().most, 0U);
}

TEST_F(DeviceTest, AllocFreesTheGroupWhenAStepFails) {
  open();
  const unsigned start = state_->calls;
  for (unsigned call = 0;; ++call) {
    state_->commands.clear();
    state_->failing_call = state_->calls + call;
    const unsigned before = state_->calls;
    const auto handle = device_->alloc(2, 0);
    if (handle) {
      EXPECT_GT(call, 14U);
      break;
    }
    ASSERT_LT(call, 40U) << start;
    EXPECT_EQ(handle.error().code, std::errc::io_error);
    // The first three calls are the ALLOC command itself. A failure after them must free the group.
    if (state_->calls > before + 3) {
      EXPECT_EQ(opcodes().back(), kFree) << call;
    }
  }
}

TEST_F(DeviceTest, EnableArmsTheGroup) {
  open();
  const auto handle = device_->alloc(2, 0);
  ASSERT_TRUE(handle);
  ASSERT_TRUE(device_->enable(*handle));
  EXPECT_EQ(group_register(GBA_GROUP_CONTROL), GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
}

TEST_F(DeviceTest, DisableStopsArrivals) {
  open();
  const auto handle = device_->alloc(2, 0).value();
  ASSERT_TRUE(device_->enable(handle));
  ASSERT_TRUE(device_->disable(handle));
  EXPECT_EQ(group_register(GBA_GROUP_CONTROL), 0U);
}

/// A posted write has arrived once a later read of the same function is answered.
TEST_F(DeviceTest, FlushesItsWritesToAGroupBeforeItReturns) {
  open();
  const auto handle = device_->alloc(2, 0);
  ASSERT_TRUE(handle);
  EXPECT_EQ(state_->log.back(), "read");
  ASSERT_TRUE(device_->enable(*handle));
  EXPECT_EQ(state_->log.back(), "read");
  ASSERT_TRUE(device_->disable(*handle));
  EXPECT_EQ(state_->log.back(), "read");
}

TEST_F(DeviceTest, WritesToARemovedDeviceFindItLost) {
  for (const auto& change : {&Device::enable, &Device::disable}) {
    state_ = std::make_shared<FakeState>();
    open();
    const auto handle = device_->alloc(2, 0);
    ASSERT_TRUE(handle);
    state_->removed = true;
    const auto changed = ((*device_).*change)(*handle);
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code, std::errc::no_such_device);
    EXPECT_TRUE(device_->backend().lost());
  }
}

TEST_F(DeviceTest, OnlyTheOwnerEnablesAndDisables) {
  open();
  EXPECT_EQ(device_->enable(handle_).error().code, std::errc::operation_not_permitted);
  EXPECT_EQ(device_->disable(handle_).error().code, std::errc::operation_not_permitted);
  auto handle = device_->alloc(2, 0).value();
  handle.key ^= 1;
  EXPECT_EQ(device_->enable(handle).error().code, std::errc::operation_not_permitted);
  EXPECT_EQ(group_register(GBA_GROUP_CONTROL), 0U);
}

TEST_F(DeviceTest, FreeEndsOwnership) {
  open();
  const auto handle = device_->alloc(2, 0).value();
  ASSERT_TRUE(device_->free_group(handle));
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kFree));
  EXPECT_EQ(device_->enable(handle).error().code, std::errc::operation_not_permitted);
}

TEST_F(DeviceTest, FreeWithTheKeyOfAnEarlierGroupLeavesTheNewOneAlone) {
  open();
  auto handle = device_->alloc(2, 0).value();
  handle.key ^= 1;
  EXPECT_EQ(device_->free_group(handle).error().code, std::errc::no_such_file_or_directory);
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc));
}

TEST_F(DeviceTest, PrivilegedPortResetsTheDevice) {
  state_->privileged = true;
  state_->control[GBA_REG_FAULT] = GBA_FAULT_BIT(GBA_FAULT_NOT_PERMITTED) | GBA_FAULT_BIT(GBA_FAULT_KEY);
  open();
  const auto done = device_->reset();
  EXPECT_TRUE(done) << done.error().text;
  EXPECT_EQ(state_->control[GBA_REG_DEV_CONTROL], GBA_DEV_CONTROL_RESET);
  EXPECT_EQ(state_->control[GBA_REG_FAULT], GBA_FAULT_BIT(GBA_FAULT_KEY)) << "other faults are left alone";
}

TEST_F(DeviceTest, ResetByAnOrdinaryPortIsRefusedAndLeavesNoFault) {
  open();
  const Error error = device_->reset().error();
  EXPECT_EQ(error.code, std::errc::operation_not_permitted);
  EXPECT_THAT(error.text, HasSubstr("gba: cannot reset fake:0: port 5 is not the privileged one"));
  EXPECT_EQ(state_->control[GBA_REG_FAULT], 0U);
}

TEST_F(DeviceTest, ResetReportsADeviceThatDoesNotComeBack) {
  state_->privileged = true;
  open();
  state_->control[GBA_REG_DEV_STATUS] = GBA_DEV_STATUS_FATAL;
  const Error error = device_->reset().error();
  EXPECT_EQ(error.code, std::errc::io_error);
  EXPECT_THAT(error.text, HasSubstr("gba: cannot reset fake:0: it reports a fatal error"));
}

TEST_F(DeviceTest, ResetOfARemovedDeviceFindsItLost) {
  open();
  state_->removed = true;
  EXPECT_EQ(device_->reset().error().code, std::errc::no_such_device);
  EXPECT_TRUE(device_->backend().lost());
}

TEST_F(DeviceTest, LeavesAndFreesItsGroupsWhenTheKernelWantsItBack) {
  open();
  handle_ = device_->alloc(12, 0).value();
  auto member = join();
  state_->loss_seen = Loss::kWanted;
  state_->lose();
  EXPECT_TRUE(device_->backend().check_lost());
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kJoin, kLeave, kFree));
  EXPECT_TRUE(device_->backend().check_lost());
  EXPECT_TRUE(member.leave());
  EXPECT_EQ(state_->commands.size(), 4U) << "each command is sent once";
}

TEST_F(DeviceTest, IsGivenBackToTheKernelWithoutACall) {
  open();
  handle_ = device_->alloc(12, 0).value();
  auto member = join();
  state_->loss_seen = Loss::kWanted;
  std::promise<void> lost;
  state_->when_lost = [&] { lost.set_value(); };
  device_->serve_status("unit/" + std::to_string(::getpid()));
  state_->lose();
  ASSERT_EQ(lost.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready);
  EXPECT_TRUE(device_->backend().lost());
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kJoin, kLeave, kFree));
  EXPECT_TRUE(member.leave());
}

TEST_F(DeviceTest, IsGivenBackToTheKernelOnceThereIsMemory) {
  open();
  handle_ = device_->alloc(12, 0).value();
  state_->loss_seen = Loss::kWanted;
  std::promise<void> lost;
  state_->when_lost = [&] { lost.set_value(); };
  const auto set_memory = [&](bool none) {
    const std::lock_guard lock(state_->mutex);
    state_->out_of_memory = none;
  };
  const auto calls = [&] {
    const std::lock_guard lock(state_->mutex);
    return state_->calls;
  };
  set_memory(false);
  device_->serve_status("unit-memory/" + std::to_string(::getpid()));
  set_memory(true);
  const unsigned before = calls();
  state_->lose();
  for (int i = 0; i < 20'000 && calls() < before + 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});  // the thread needs the mutex, too
  }
  ASSERT_GE(calls(), before + 3);
  EXPECT_FALSE(device_->backend().lost()) << "its thread has tried, and lives";
  set_memory(false);
  ASSERT_EQ(lost.get_future().wait_for(std::chrono::seconds{20}), std::future_status::ready);
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kFree));
}

TEST_F(DeviceTest, FreesItsGroupsWhereClosingDoesNotResetTheFunction) {
  open();
  ASSERT_TRUE(device_->alloc(12, 0));
  device_.reset();
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc)) << "the reset frees the group";
  state_ = std::make_shared<FakeState>();
  state_->resets_on_close = false;
  open();
  ASSERT_TRUE(device_->alloc(12, 0));
  device_.reset();
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kFree));
}

TEST_F(DeviceTest, SendsNothingToADeviceThatIsLostForAnotherReason) {
  open();
  handle_ = device_->alloc(12, 0).value();
  const auto member = join();
  state_->lose();
  EXPECT_TRUE(device_->backend().check_lost());
  EXPECT_THAT(opcodes(), ElementsAre(kAlloc, kJoin));
}

TEST_F(DeviceTest, RefusesInvalidHandles) {
  open();
  const gba_group_handle good = handle_;
  for (auto spoil : {+[](gba_group_handle& h) { h.group = 32; }, +[](gba_group_handle& h) { h.member_count = 0; },
                     +[](gba_group_handle& h) { h.member_count = 709; }, +[](gba_group_handle& h) { h.reserved = 1; },
                     +[](gba_group_handle& h) { h.sequence = UINT64_MAX; }}) {
    gba_group_handle bad = good;
    spoil(bad);
    EXPECT_EQ(device_->enable(bad).error().code, std::errc::invalid_argument);
    EXPECT_EQ(device_->free_group(bad).error().code, std::errc::invalid_argument);
    EXPECT_EQ(Membership::join(device_, bad, 0).error().code, std::errc::invalid_argument);
  }
  EXPECT_TRUE(state_->commands.empty());
}

}  // namespace
}  // namespace gba::test
