// SPDX-License-Identifier: Apache-2.0
// CONTROL, STATUS, TIMEOUT, reset and errors of a group. Uapi rules 7, 8, 16 and 20 to 23.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device::kNever;
using fake_device::kNobody;
using fake_device_test::Device;
using fake_device_test::error_word;
using fake_device_test::kErrorVector;
using fake_device_test::raise;
using fake_device_test::store;
using ::testing::ElementsAre;

class EnableWithMemberCount : public ::testing::TestWithParam<unsigned> {};

TEST_P(EnableWithMemberCount, OtherThanTheMaskBitsIsRefused) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 4);
  device.group_write(0, group, GBA_GROUP_MEMBER_COUNT, GetParam(), 4);
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_CONTROL), GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
  EXPECT_EQ(device.status(group), 0U);
}

INSTANTIATE_TEST_SUITE_P(Counts, EnableWithMemberCount, ::testing::Values(1, 3, 5, 708));

TEST(Enable, OfAGroupWithoutMembersIsRefused) {
  Device device;
  const unsigned group = device.alloc(0);
  device.control(0, group, GBA_CONTROL_ENABLE);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_CONTROL), 0U);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
}

TEST(Enable, AcceptsAMaskWithHoles) {
  Device device;
  const unsigned group = device.alloc(0);
  device.group_write(0, group, GBA_GROUP_MEMBER_COUNT, 2, 4);
  device.group_write(0, group, GBA_GROUP_MEMBER_MASK + 8 * 11, 1U << 3);
  device.group_write(0, group, GBA_GROUP_MEMBER_MASK, 1);
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.join(0, group, 0), unsigned{GBA_CMD_OK});
  EXPECT_EQ(device.join(1, group, 707), unsigned{GBA_CMD_OK});
  EXPECT_EQ(device.join(2, group, 1), unsigned{GBA_CMD_ERROR_MEMBER});
  device.model.arrive(0, group, Device::word(0, 1), 0);
  device.model.arrive(1, group, Device::word(707, 1), 0);
  EXPECT_EQ(device.sequence(group), 1U);
}

TEST(Enable, WrittenAgainChangesNothing) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1);
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 1U);
}

TEST(Enable, ThatIsClearedForgetsTheOpenRound) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1);
  device.control(0, group, GBA_CONTROL_ARM);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 0U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVED_MASK), 0U);
  EXPECT_EQ(device.status(group), 0U);
  device.control(0, group, Device::kRunning);
  device.arrive(group, 1, 1);
  EXPECT_EQ(device.sequence(group), 0U);
  device.arrive(group, 0, 1);
  EXPECT_EQ(device.sequence(group), 1U);
}

TEST(Arm, ThatIsClearMakesTheNextReleaseTheLast) {
  Device device;
  const unsigned group = device.barrier(1);
  device.control(0, group, GBA_CONTROL_ENABLE);
  device.arrive(group, 0, 1);
  EXPECT_EQ(device.sequence(group), 1U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_CONTROL), 0U);
  EXPECT_EQ(device.status(group), GBA_STATUS_COMPLETE);
  device.effects.take();
  device.arrive(group, 0, 1);  // a repeat is still answered
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 1)));
  device.arrive(group, 0, 2);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED));
  EXPECT_EQ(device.sequence(group), 1U);
}

TEST(Status, FollowsTheRound) {
  Device device;
  const unsigned group = device.alloc(0);
  EXPECT_EQ(device.status(group), 0U);
  device.configure(0, group, 2);
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.status(group), GBA_STATUS_READY);
  device.join(0, group, 0);
  device.join(1, group, 1);
  device.arrive(group, 0, 1);
  EXPECT_EQ(device.status(group), GBA_STATUS_ACTIVE);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVED_MASK), 1U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 1U);
  device.arrive(group, 1, 1);
  EXPECT_EQ(device.status(group), GBA_STATUS_READY | GBA_STATUS_COMPLETE);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVED_MASK), 0U);
  device.arrive(group, 1, 2);
  EXPECT_EQ(device.status(group), GBA_STATUS_ACTIVE);
  device.control(0, group, GBA_CONTROL_RESET);
  EXPECT_EQ(device.status(group), GBA_STATUS_ERROR);
}

TEST(Reset, PutsTheGroupIntoErrorAndTellsEveryMember) {
  Device device;
  const unsigned group = device.barrier(2, 6);
  device.arrive(group, 1, 7);
  device.control(0, group, Device::kRunning | GBA_CONTROL_RESET);
  const auto word = error_word(GBA_ERROR_RESET, 6);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, word), store(1, group, word), raise(0, kErrorVector),
                                                 raise(1, kErrorVector)));
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(device.error_member(group), kNobody);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_CONTROL) & (GBA_CONTROL_ENABLE | GBA_CONTROL_RESET), 0U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVED_MASK), 2U) << "the arrivals can still be read";
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_RESETS), 1U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ERRORS), 1U);
}

TEST(Reset, OfAGroupThatWasNeverEnabledIsAnErrorToo) {
  Device device;
  const unsigned group = device.alloc(0);
  device.control(0, group, GBA_CONTROL_RESET);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_RESET});
}

TEST(Error, IsStickyUntilTheGroupIsFreed) {
  Device device;
  const unsigned group = device.barrier(1, 3);
  device.control(0, group, GBA_CONTROL_RESET);
  device.control(0, group, Device::kRunning);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_CONFIG));
  device.group_write(0, group, GBA_GROUP_SEQUENCE, 77);
  EXPECT_EQ(device.sequence(group), 3U);
  device.effects.take();
  device.arrive(group, 0, 4);
  device.arrive(group, 0, 9);
  device.arrive(group, 0, 2);
  const auto word = error_word(GBA_ERROR_RESET, 3);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, word), store(0, group, word), store(0, group, word)));
  EXPECT_EQ(device.sequence(group), 3U);
}

TEST(Error, KeepsItsFirstReason) {
  Device device;
  const unsigned group = device.barrier(2);
  device.control(0, group, GBA_CONTROL_RESET);
  device.model.disconnect(1);
  device.control(0, group, GBA_CONTROL_RESET);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_RESET});
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ERRORS), 1U);
}

TEST(Error, AnswersAMemberThatJoinsLateAtItsFirstArrival) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 1);
  device.control(0, group, GBA_CONTROL_RESET);
  device.join(0, group, 0);
  device.arrive(group, 0, 1);
  EXPECT_EQ((device.effects.flags[{0, group}]), error_word(GBA_ERROR_RESET, 0));
}

TEST(ShutDown, TellsEveryMemberThatTheLinkIsDown) {
  Device device;
  const unsigned first = device.barrier(2, 1);
  const unsigned second = device.barrier(1, 2);
  device.model.shut_down();
  EXPECT_EQ((device.effects.flags[{1, first}]), error_word(GBA_ERROR_LINK_DOWN, 1));
  EXPECT_EQ((device.effects.flags[{0, second}]), error_word(GBA_ERROR_LINK_DOWN, 2));
}

TEST(DmaFault, OfAReleaseAnswersAllOthersFirst) {
  Device device;
  const unsigned group = device.barrier(3, 10);
  device.group_write(1, group, GBA_GROUP_RELEASE_ADDR + 8, 0x7000);
  device.effects.broken.insert(1);
  device.arrive(group, 0, 11);
  device.arrive(group, 1, 11);
  device.arrive(group, 2, 11);
  const auto word = error_word(GBA_ERROR_DMA_FAULT, 11);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 11), raise(1, kErrorVector), store(2, group, 11),
                                                 store(0, group, word), store(2, group, word), raise(0, kErrorVector),
                                                 raise(1, kErrorVector), raise(2, kErrorVector)));
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_DMA_FAULT});
  EXPECT_EQ(device.error_member(group), 1U);
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(device.read(1, GBA_REG_FAULT_ADDR), 0x7000U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_DMA_FAULTS), 2U) << "the release and the error word";
}

TEST(DmaFault, OfAStaleAnswerIsAnErrorToo) {
  Device device;
  const unsigned group = device.barrier(2, 10);
  device.effects.broken.insert(1);
  device.arrive(group, 1, 10);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_DMA_FAULT});
  EXPECT_EQ((device.effects.flags[{0, group}]), error_word(GBA_ERROR_DMA_FAULT, 10));
}

TEST(DmaFault, FoundLaterIsTheSameError) {
  Device device;
  const unsigned group = device.barrier(2);
  device.model.flag_store_failed(1, group, 0x4440);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_DMA_FAULT});
  EXPECT_EQ(device.error_member(group), 1U);
  EXPECT_EQ(device.read(1, GBA_REG_FAULT_ADDR), 0x4440U);
}

TEST(DmaFault, FoundAfterTheMemberLeftIsAFaultOnly) {
  Device device;
  const unsigned group = device.barrier(2);
  device.model.flag_store_failed(5, group, 0x4440);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.fault(5), GBA_FAULT_BIT(GBA_FAULT_DMA));
}

TEST(Timeout, RunsFromTheFirstArrival) {
  Device device;
  const unsigned group = device.barrier(3, 4);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 1000);
  EXPECT_EQ(device.model.next_deadline(), kNever);
  device.arrive(group, 2, 5, false, 500);
  EXPECT_EQ(device.model.next_deadline(), 1500U);
  device.arrive(group, 0, 5, false, 900);
  EXPECT_EQ(device.model.next_deadline(), 1500U);
  device.model.expire(1499);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  device.model.expire(1500);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_TIMEOUT});
  EXPECT_EQ(device.error_member(group), 1U) << "the first missing member";
  EXPECT_EQ((device.effects.flags[{2, group}]), error_word(GBA_ERROR_TIMEOUT, 4));
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_TIMEOUT));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_TIMEOUTS), 1U);
  EXPECT_EQ(device.model.next_deadline(), kNever);
}

TEST(Timeout, StopsWithTheReleaseAndStartsWithTheNextRound) {
  Device device;
  const unsigned group = device.barrier(2);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 100);
  device.arrive(group, 0, 1, false, 10);
  device.arrive(group, 1, 1, false, 20);
  device.model.expire(1000);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.model.next_deadline(), kNever);
  device.arrive(group, 1, 2, false, 2000);
  EXPECT_EQ(device.model.next_deadline(), 2100U);
}

TEST(Timeout, ChangedInAnOpenRoundCountsFromItsFirstArrival) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1, false, 50);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 100);
  EXPECT_EQ(device.model.next_deadline(), 150U);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 0);
  EXPECT_EQ(device.model.next_deadline(), kNever);
}

TEST(Timeout, OfAnyLengthDoesNotWrap) {
  Device device;
  const unsigned group = device.barrier(2);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, ~std::uint64_t{0});
  device.arrive(group, 0, 1, false, 50);
  device.model.expire(1'000'000);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
}

TEST(Timeout, OfOneGroupLeavesTheOthersAlone) {
  Device device;
  const unsigned slow = device.barrier(2);
  const unsigned slower = device.barrier(2);
  device.group_write(0, slow, GBA_GROUP_TIMEOUT, 100);
  device.group_write(0, slower, GBA_GROUP_TIMEOUT, 200);
  device.arrive(slow, 0, 1, false, 0);
  device.arrive(slower, 0, 1, false, 0);
  EXPECT_EQ(device.model.next_deadline(), 100U);
  device.model.expire(100);
  EXPECT_EQ(device.error(slow), unsigned{GBA_ERROR_TIMEOUT});
  EXPECT_EQ(device.error(slower), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.model.next_deadline(), 200U);
}

TEST(Groups, DoNotTouchEachOther) {
  Device device;
  const unsigned first = device.barrier(2);
  const unsigned second = device.barrier(2, 100);
  device.arrive(first, 0, 1);
  device.arrive(second, 1, 101);
  device.control(0, first, GBA_CONTROL_RESET);
  device.effects.take();
  device.arrive(second, 0, 101);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, second, 101), store(1, second, 101)));
}

}  // namespace
