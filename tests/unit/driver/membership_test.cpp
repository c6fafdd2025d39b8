// SPDX-License-Identifier: Apache-2.0
#include "driver/membership.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

using testing::HasSubstr;

class MembershipTest : public DeviceFixture {
 protected:
  MembershipTest() { open(); }
  std::size_t commands(std::uint64_t opcode) const {
    return static_cast<std::size_t>(
        std::count_if(state_->commands.begin(), state_->commands.end(),
                      [&](std::uint64_t word) { return GBA_FIELD_GET(GBA_CMD_OPCODE, word) == opcode; }));
  }
  std::uint64_t release_address() {
    return state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_RELEASE_ADDR + std::size_t{8} * kMember];
  }
  void refuse(std::uint64_t opcode, std::uint64_t error) {
    state_->command_status[opcode] = GBA_FIELD_PUT(GBA_CMD_STATUS_ERROR, error);
  }
};

TEST_F(MembershipTest, JoinsWithItsKeyThenSetsItsFlagThenArmsItsInterrupt) {
  const Membership membership = join();
  EXPECT_EQ(state_->commands.back(), 0x0000beef00070303U);
  EXPECT_EQ(release_address() % GBA_FLAG_STRIDE, 0U);
  EXPECT_EQ(state_->armed.count(kGroup), 1U);
  EXPECT_GE(membership.eventfd(), 0);
}

TEST_F(MembershipTest, FlagIsTheMemoryThatTheDeviceSeesAndIsPoisonedFirst) {
  const Membership membership = join();
  EXPECT_EQ(state_->flag_by_file(kGroup, kMember).load(), FlagMemory::kPoison);
  state_->flag_by_file(kGroup, kMember).store(17);
  EXPECT_EQ(membership.flag().load(), 17U);
}

TEST_F(MembershipTest, PoisonIsNeitherAnErrorNorNearAnySequence) {
  EXPECT_EQ(GBA_FIELD_GET(GBA_FLAG_ERROR, FlagMemory::kPoison), 0U);
  EXPECT_NE(FlagMemory::kPoison, GBA_ALL_ONES);
  EXPECT_GT(GBA_FIELD_GET(GBA_FLAG_SEQUENCE, FlagMemory::kPoison), std::uint64_t{1} << 54);
}

TEST_F(MembershipTest, LeaveUnbindsAndDisarms) {
  Membership membership = join();
  ASSERT_TRUE(membership.leave());
  EXPECT_EQ(state_->commands.back() & 0xffff, GBA_CMD_LEAVE | kGroup << 8);
  EXPECT_TRUE(state_->armed.empty());
  ASSERT_TRUE(membership.leave());
  EXPECT_EQ(commands(GBA_CMD_LEAVE), 1U);
}

TEST_F(MembershipTest, DestructorLeaves) {
  { const Membership membership = join(); }
  EXPECT_EQ(commands(GBA_CMD_LEAVE), 1U);
}

TEST_F(MembershipTest, MoveKeepsTheMembership) {
  Membership first = join();
  const Membership second = std::move(first);
  EXPECT_EQ(commands(GBA_CMD_LEAVE), 0U);
  EXPECT_EQ(second.flag().load(), FlagMemory::kPoison);
}

TEST_F(MembershipTest, LeavingAFreedGroupIsNoError) {
  Membership one = join();
  refuse(GBA_CMD_LEAVE, GBA_CMD_ERROR_NOT_JOINED);
  EXPECT_TRUE(one.leave());
  Membership two = join();
  refuse(GBA_CMD_LEAVE, GBA_CMD_ERROR_GROUP);
  EXPECT_TRUE(two.leave());
}

TEST_F(MembershipTest, LeaveReportsALostDevice) {
  Membership membership = join();
  device_->backend().declare_lost(Loss::kRemoved);
  EXPECT_EQ(membership.leave().error().code, std::errc::no_such_device);
}

TEST_F(MembershipTest, OldMembershipOfAFreedGroupDoesNotEndTheNewOne) {
  std::optional<Membership> old = join();
  const Membership current = join();
  old.reset();
  EXPECT_EQ(commands(GBA_CMD_LEAVE), 0U);
  EXPECT_EQ(state_->armed.count(kGroup), 1U);
}

TEST_F(MembershipTest, RefusedJoinLeavesTheOtherMembershipArmed) {
  const Membership first = join();
  const int armed = state_->armed.at(kGroup);
  refuse(GBA_CMD_JOIN, GBA_CMD_ERROR_ALREADY_JOINED);
  EXPECT_EQ(Membership::join(device_, handle_, kMember).error().code, std::errc::connection_already_in_progress);
  EXPECT_EQ(state_->armed.at(kGroup), armed);
  EXPECT_EQ(commands(GBA_CMD_LEAVE), 0U);
}

TEST_F(MembershipTest, RefusesAMemberThatTheGroupDoesNotHave) {
  const auto membership = Membership::join(device_, handle_, handle_.member_count);
  ASSERT_FALSE(membership);
  EXPECT_EQ(membership.error().code, std::errc::invalid_argument);
  EXPECT_THAT(membership.error().text, HasSubstr("as member 12: it has members 0 to 11"));
}

TEST_F(MembershipTest, FailureOfAnyStepUndoesTheOthers) {
  for (unsigned call = 0;; ++call) {
    state_ = std::make_shared<FakeState>();
    open();
    state_->failing_call = state_->calls + call;
    const auto membership = Membership::join(device_, handle_, kMember);
    if (membership) {
      EXPECT_GE(call, 5U);
      return;
    }
    EXPECT_EQ(membership.error().code, std::errc::io_error);
    EXPECT_TRUE(state_->armed.empty()) << call;
    if (release_address() != 0 || state_->count("arm_irq") > 0) {
      EXPECT_EQ(commands(GBA_CMD_LEAVE), 1U) << call;
    }
    device_.reset();
    EXPECT_TRUE(state_->dma.empty()) << call;
  }
}

TEST_F(MembershipTest, WorksWithoutAnInterruptIfTheMachineHasTooFewVectors) {
  state_->out_of_vectors = true;
  auto membership = Membership::join(device_, handle_, kMember);
  ASSERT_TRUE(membership) << membership.error().text;
  EXPECT_EQ(membership->eventfd(), -1);
  ASSERT_TRUE(membership->leave());
  EXPECT_EQ(state_->count("disarm_irq"), 0U);
}

TEST_F(MembershipTest, EveryJoinGetsALineThatTheDeviceNeverStoredTo) {
  std::set<std::uint64_t> addresses;
  for (int round = 0; round < 1000; ++round) {
    Membership membership = join();
    ASSERT_EQ(membership.flag().load(), FlagMemory::kPoison) << round;
    ASSERT_TRUE(addresses.insert(release_address()).second) << round;
    state_->store_flag(kGroup, kMember, 1);
    ASSERT_TRUE(membership.leave());
  }
  EXPECT_LE(state_->dma.size(), 1U);
  EXPECT_EQ(state_->count("dma_map"), (1000 + 63) / 64U);
}

TEST_F(MembershipTest, PageStaysMappedWhileOneOfItsLinesIsInUse) {
  const Membership first = join();
  const std::uint64_t address = release_address();
  for (int i = 0; i < 200; ++i) {
    (void)join();
  }
  EXPECT_EQ(state_->dma.size(), 2U);
  const auto page = std::prev(state_->dma.upper_bound(address));
  MmioRegion(page->second.by_file.bytes()).word<std::uint64_t>(address - page->first).store(9);
  EXPECT_EQ(first.flag().load(), 9U);
}

TEST_F(MembershipTest, KeepsTheDeviceOpen) {
  std::optional<Membership> membership = join();
  device_.reset();
  EXPECT_EQ(state_->dma.size(), 1U);
  membership.reset();
  EXPECT_TRUE(state_->dma.empty());
}

}  // namespace
}  // namespace gba::test
