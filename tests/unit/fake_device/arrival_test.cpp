// SPDX-License-Identifier: Apache-2.0
// Every state transition that an arrival can cause. Uapi rules 9 to 13 and 15.
#include "tests/unit/fake_device/model_fixture.hpp"

namespace {

using fake_device_test::Device;
using fake_device_test::error_word;
using fake_device_test::kErrorVector;
using fake_device_test::raise;
using fake_device_test::store;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Arrival, OfTheLastMemberReleasesAll) {
  Device device;
  const unsigned group = device.barrier(3);
  device.arrive(group, 2, 1);
  device.arrive(group, 0, 1);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  device.arrive(group, 1, 1);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 1), store(1, group, 1), store(2, group, 1)));
  EXPECT_EQ(device.sequence(group), 1U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ARRIVALS), 3U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_RELEASES), 1U);
}

TEST(Arrival, RepeatedInItsRoundHasNoEffect) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1);
  device.arrive(group, 0, 1);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 1U);
}

// Uapi rule 11: it counts like every other member.
TEST(Arrival, OfAllButAMemberThatNoPortHasJoinedAsLeavesTheRoundOpen) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 3);
  device.control(0, group, Device::kRunning);
  device.join(0, group, 0);
  device.join(1, group, 1);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 500);
  device.effects.take();
  device.arrive(group, 0, 1, false, 100);
  device.arrive(group, 1, 1, false, 200);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVED_MASK), 0b011U);
  device.join(2, group, 2);
  device.arrive(group, 2, 1, false, 300);
  EXPECT_EQ(device.sequence(group), 1U) << "it has joined late";
  device.command(2, GBA_CMD_LEAVE, group);
}

TEST(Arrival, OfAMemberThatNoPortHasJoinedAsIsMissingAtTheTimeout) {  // uapi rules 11, 16 and 22
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 2);
  device.control(0, group, Device::kRunning);
  device.join(0, group, 0);
  device.group_write(0, group, GBA_GROUP_TIMEOUT, 500);
  device.effects.take();
  device.arrive(group, 0, 1, false, 100);
  device.model.expire(599);
  EXPECT_THAT(device.effects.take(), IsEmpty()) << "no round ends early";
  device.model.expire(600);
  EXPECT_EQ(device.error_member(group), 1U);
  EXPECT_THAT(device.effects.events, Contains(store(0, group, error_word(GBA_ERROR_TIMEOUT, 0))));
}

TEST(Arrival, ThatIsStaleIsAnsweredAgainToThatMemberOnly) {  // uapi rule 12
  Device device;
  const unsigned group = device.barrier(2, 5);
  for (const std::uint64_t sequence : {5U, 4U, 1U}) {
    device.arrive(group, 1, sequence);
    EXPECT_THAT(device.effects.take(), ElementsAre(store(1, group, 5)));
  }
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_STALE), 3U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ARRIVALS), 3U);
}

TEST(Arrival, OfAnEarlierSequenceDoesNotTouchTheOpenRound) {
  Device device;
  const unsigned group = device.barrier(2, 5);
  device.arrive(group, 0, 6);
  device.arrive(group, 0, 5);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 1U);
  device.arrive(group, 1, 6);
  EXPECT_EQ(device.sequence(group), 6U);
}

TEST(Arrival, MoreThanOneRoundAheadIsAProtocolError) {
  Device device;
  const unsigned group = device.barrier(2, 5);
  device.arrive(group, 1, 7);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_PROTOCOL});
  EXPECT_EQ(device.error_member(group), 1U);
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_PROTOCOL));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_REJECTED), 1U);
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_ARRIVALS), 0U);
  EXPECT_EQ((device.effects.flags[{0, group}]), error_word(GBA_ERROR_PROTOCOL, 5));
  EXPECT_EQ((device.effects.flags[{1, group}]), error_word(GBA_ERROR_PROTOCOL, 5));
}

TEST(Arrival, AtAGroupThatWasNeverEnabledIsRejected) {
  Device device;
  const unsigned group = device.alloc(0);
  device.configure(0, group, 2);
  device.join(1, group, 1);
  for (const std::uint64_t sequence : {0U, 1U, 2U}) {
    device.arrive(group, 1, sequence);
  }
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_REJECTED), 3U);
  EXPECT_EQ((device.effects.flags[{1, group}]), 0U);
}

TEST(Arrival, AtAGroupThatIsNotEnabledNowIsAnsweredOnlyIfStale) {
  Device device;
  const unsigned group = device.barrier(2, 5);
  device.control(0, group, GBA_CONTROL_ARM);
  device.arrive(group, 1, 5);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(1, group, 5)));
  device.arrive(group, 1, 6);
  device.arrive(group, 1, 7);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_NONE});
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED));
}

TEST(Arrival, OfAPortThatIsNotThatMemberIsRejectedAndNothingElse) {
  Device device;
  const unsigned group = device.barrier(2);
  device.model.arrive(0, group, Device::word(1, 1), 0);    // the place of another member
  device.model.arrive(4, group, Device::word(0, 1), 0);    // not joined at all
  device.model.arrive(4, group, Device::word(708, 1), 0);  // no such member
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
  EXPECT_EQ(device.fault(4), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_REJECTED), 3U);
  EXPECT_EQ(device.group_read(group, GBA_GROUP_ARRIVAL_COUNT, 4), 0U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FAULT_INFO_MEMBER, device.read(0, GBA_REG_FAULT_INFO)), 1U);
  EXPECT_EQ(GBA_FIELD_GET(GBA_FAULT_INFO_VALUE, device.read(0, GBA_REG_FAULT_INFO)), 1U);
}

TEST(Arrival, AtAFreeGroupIsRejected) {
  Device device;
  device.arrive(9, 0, 1);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
}

TEST(Arrival, AfterLeaveIsRejected) {
  Device device;
  const unsigned group = device.barrier(2);
  device.command(1, GBA_CMD_LEAVE, group);
  device.effects.take();
  device.arrive(group, 1, 1);
  EXPECT_EQ(device.fault(1), GBA_FAULT_BIT(GBA_FAULT_NOT_JOINED));
  EXPECT_EQ((device.effects.flags[{1, group}]), 0U);
}

TEST(Arrival, WithReservedBitsOrWithoutValidIsRejected) {
  Device device;
  const unsigned group = device.barrier(1);
  device.model.arrive(0, group, Device::word(0, 1) | std::uint64_t{1} << 48, 0);
  device.model.arrive(0, group, Device::word(0, 1) | std::uint64_t{1} << 61, 0);
  device.model.arrive(0, group, Device::word(0, 1) & ~(std::uint64_t{1} << 62), 0);
  EXPECT_EQ(device.fault(0), GBA_FAULT_BIT(GBA_FAULT_BAD_ARRIVAL));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_REJECTED), 3U);
  EXPECT_EQ(device.sequence(group), 0U);
}

TEST(Arrival, OutsideTheSlotsIsAFault) {
  Device device;
  device.model.bad_doorbell(2, 0x8000, 5);
  EXPECT_EQ(device.fault(2), GBA_FAULT_BIT(GBA_FAULT_BAD_ARRIVAL));
  EXPECT_EQ(device.read(2, GBA_REG_FAULT_ADDR), 0x8000U);
}

class Wrap : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Wrap, OfTheLow32BitsIsAnOrdinaryStep) {
  Device device;
  const std::uint64_t start = GetParam();
  const unsigned group = device.barrier(2, start);
  for (std::uint64_t k = start + 1; k <= start + 6; ++k) {
    device.arrive(group, 0, k);
    device.arrive(group, 0, k - 1);  // stale; in some rounds from before the wrap
    EXPECT_EQ((device.effects.flags[{0, group}]), k - 1);
    device.arrive(group, 1, k);
    EXPECT_EQ((device.effects.flags[{0, group}]), k);
    EXPECT_EQ((device.effects.flags[{1, group}]), k);
  }
  EXPECT_EQ(device.sequence(group), start + 6);
  device.arrive(group, 0, start + 8);
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_PROTOCOL});
}

INSTANTIATE_TEST_SUITE_P(Starts, Wrap,
                         ::testing::Values(0U, 0xfffffffdULL, 0x1fffffffdULL, 0x7ffffffdULL, 0xfffffffffffdULL));

TEST(Distance, OfHalfTheRangeIsStaleAndNotAhead) {
  Device device;
  const unsigned group = device.barrier(1, 0x80000005);
  device.arrive(group, 0, 5);  // d = -2^31
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_STALE), 1U);
  device.arrive(group, 0, 4);  // d = 2^31 - 1
  EXPECT_EQ(device.error(group), unsigned{GBA_ERROR_PROTOCOL});
}

TEST(Flag, HoldsAllBitsOfTheSequence) {
  Device device;
  const unsigned group = device.barrier(1, 0x123456789abcULL);
  device.arrive(group, 0, 0x123456789abdULL);
  EXPECT_EQ((device.effects.flags[{0, group}]), 0x123456789abdULL);
}

TEST(Notify, IsRememberedUntilTheRelease) {
  Device device;
  const unsigned group = device.barrier(3);
  device.arrive(group, 0, 1, /*notify=*/true);
  device.arrive(group, 1, 1);
  EXPECT_THAT(device.effects.take(), IsEmpty());
  device.arrive(group, 2, 1, /*notify=*/true);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 1), store(1, group, 1), store(2, group, 1),
                                                 raise(0, group), raise(2, group)));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_INTERRUPTS), 2U);
}

TEST(Notify, IsAcceptedWithARepeatedArrival) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1);
  device.arrive(group, 0, 1, /*notify=*/true);
  device.arrive(group, 1, 1);
  EXPECT_THAT(device.effects.take(), Contains(raise(0, group)));
}

TEST(Notify, CountsForOneReleaseOnly) {
  Device device;
  const unsigned group = device.barrier(1);
  device.arrive(group, 0, 1, /*notify=*/true);
  device.effects.take();
  device.arrive(group, 0, 2);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 2)));
}

TEST(Notify, OfAStaleArrivalRaisesAnInterruptAtOnce) {
  Device device;
  const unsigned group = device.barrier(2, 3);
  device.arrive(group, 0, 3, /*notify=*/true);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 3), raise(0, group)));
}

TEST(Notify, ForTheRoundSurvivesAStaleArrival) {
  Device device;
  const unsigned group = device.barrier(2, 3);
  device.arrive(group, 0, 4, /*notify=*/true);
  device.arrive(group, 0, 3, /*notify=*/true);
  device.effects.take();
  device.arrive(group, 1, 4);
  EXPECT_THAT(device.effects.take(), Contains(raise(0, group)));
}

TEST(Notify, RaisesAnInterruptForAnErrorToo) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 1, /*notify=*/true);
  device.control(0, group, GBA_CONTROL_IRQ_EN | GBA_CONTROL_RESET);
  const auto word = error_word(GBA_ERROR_RESET, 0);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, word), store(1, group, word), raise(0, group),
                                                 raise(0, kErrorVector), raise(1, kErrorVector)));
  device.arrive(group, 1, 1, /*notify=*/true);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(1, group, word), raise(1, group)));
}

TEST(Notify, OfAProtocolErrorRaisesAnInterrupt) {
  Device device;
  const unsigned group = device.barrier(2);
  device.arrive(group, 0, 2, /*notify=*/true);
  EXPECT_THAT(device.effects.take(), Contains(raise(0, group)));
}

TEST(Notify, IsIgnoredWhileInterruptsAreOff) {
  Device device;
  const unsigned group = device.barrier(1);
  device.control(0, group, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM);
  device.arrive(group, 0, 1, /*notify=*/true);
  device.arrive(group, 0, 1, /*notify=*/true);
  EXPECT_THAT(device.effects.take(), ElementsAre(store(0, group, 1), store(0, group, 1)));
  EXPECT_EQ(device.counter(GBA_REG_COUNTER_INTERRUPTS), 0U);
}

TEST(Barrier, Of708MembersReleasesEachOnce) {
  Device device(GBA_MAX_MEMBERS);
  const unsigned group = device.barrier(GBA_MAX_MEMBERS);
  for (unsigned member = GBA_MAX_MEMBERS; member-- > 0;) {
    EXPECT_THAT(device.effects.events, IsEmpty());
    device.arrive(group, member, 1);
  }
  ASSERT_EQ(device.effects.events.size(), GBA_MAX_MEMBERS);
  for (unsigned member = 0; member < GBA_MAX_MEMBERS; ++member) {
    EXPECT_EQ(device.effects.events[member], store(member, group, 1));
  }
}

}  // namespace
