// SPDX-License-Identifier: Apache-2.0
#include "driver/group.hpp"
#include "base/pause.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::uint64_t kValid = std::uint64_t{1} << 62;
constexpr std::uint64_t kNotify = std::uint64_t{1} << 63;
constexpr std::uint64_t kError = std::uint64_t{1} << 63;

class GroupTest : public DeviceFixture {
 protected:
  Group& group() {
    if (!group_) {
      if (!device_) {
        open();
      }
      group_.emplace(join());
    }
    return *group_;
  }
  void release(std::uint64_t word) { state_->store_flag(kGroup, kMember, word); }
  std::uint64_t doorbell() const { return state_->doorbell(kGroup).load(); }
  static std::uint64_t arrival(std::uint64_t sequence) {
    return (sequence & 0xffffffff) | std::uint64_t{kMember} << 32 | kValid;
  }

  std::optional<Group> group_;
};

TEST_F(GroupTest, ArrivalIsOneWordInItsOwnSlot) {
  group().arrive(5);
  EXPECT_EQ(doorbell(), arrival(5));
  EXPECT_EQ(state_->doorbell(kGroup + 1).load(), 0U);
}

TEST_F(GroupTest, ArrivalCarriesTheLow32BitsOfTheSequence) {
  group().arrive((std::uint64_t{7} << 32) + 1);
  EXPECT_EQ(doorbell(), arrival(1));
  group().arrive(UINT32_MAX);
  EXPECT_EQ(doorbell(), arrival(UINT32_MAX));
}

TEST_F(GroupTest, ReleaseIsSeenAtTheExactSequence) {
  EXPECT_EQ(group().test(1), Group::kNotYet);
  release(1);
  EXPECT_EQ(group().test(1), std::errc{});
  EXPECT_EQ(group().test(2), Group::kNotYet);
}

TEST_F(GroupTest, SequencesAreComparedBeyond32Bits) {
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 32;
  group();
  for (std::uint64_t k = kWrap - 3; k <= kWrap + 3; ++k) {
    EXPECT_EQ(group().test(k), Group::kNotYet);
    release(k);
    EXPECT_EQ(group().test(k), std::errc{});
    EXPECT_EQ(group().test(k - kWrap), Group::kNotYet);
  }
}

TEST_F(GroupTest, BarrierReleasedBeforeAnErrorSucceeds) {
  group();
  release(kError | std::uint64_t{GBA_ERROR_LEAVE} << 56 | 8);
  EXPECT_EQ(group().test(8), std::errc{});
  EXPECT_EQ(group().test(9), std::errc::broken_pipe);
}

TEST_F(GroupTest, AllOnesIsALostDevice) {
  group();
  release(GBA_ALL_ONES);
  EXPECT_EQ(group().test(3), std::errc::no_such_device);
  EXPECT_TRUE(device_->backend().lost());
}

struct Failure {
  std::uint64_t code;
  std::errc errc;
  const char* text;
};

class GroupErrors : public GroupTest, public testing::WithParamInterface<Failure> {};

TEST_P(GroupErrors, HaveTheirErrnoAndText) {
  group();
  release(kError | GetParam().code << 56 | 4);
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_ERROR_CODE] =
      GetParam().code | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, 2);
  ASSERT_EQ(group().test(5), GetParam().errc);
  EXPECT_EQ(group().wait(5, Deadline::never()), GetParam().errc);
  const Error error = group().describe(GetParam().errc, 5);
  EXPECT_EQ(error.code, GetParam().errc);
  EXPECT_EQ(error.text, std::string("gba: group 3: barrier 5 will not be released: ") + GetParam().text +
                            " (member 2); the last one released is 4");
}

INSTANTIATE_TEST_SUITE_P(
    All, GroupErrors,
    testing::Values(Failure{GBA_ERROR_LINK_DOWN, std::errc::network_down, "a member's link is down"},
                    Failure{GBA_ERROR_TIMEOUT, std::errc::stream_timeout,
                            "the round took longer than the group's TIMEOUT"},
                    Failure{GBA_ERROR_DMA_FAULT, std::errc::bad_address, "the device could not write a release flag"},
                    Failure{GBA_ERROR_RESET, std::errc::connection_reset, "the group or the device was reset"},
                    Failure{GBA_ERROR_PROTOCOL, std::errc::protocol_error, "a member arrived out of order"},
                    Failure{GBA_ERROR_LEAVE, std::errc::broken_pipe, "a member left the group, or its process ended"},
                    Failure{77, std::errc::bad_message, "the device gave an unknown reason"}));

// The flag's error is the same for both; ERROR_CODE tells them apart.
TEST_F(GroupTest, TellsTheEndOfTheGroupFromTheEndOfAMember) {
  group();
  release(kError | std::uint64_t{GBA_ERROR_LEAVE} << 56 | 4);
  const std::uint64_t no_member = GBA_ERROR_LEAVE | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, 0xffff);
  for (const std::uint64_t code : {no_member, std::uint64_t{0}}) {
    state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_ERROR_CODE] = code;
    const Error error = group().describe(group().test(5), 5);
    EXPECT_EQ(error.code, std::errc::owner_dead);
    EXPECT_THAT(error.text, HasSubstr("barrier 5 will not be released: the group was taken back"));
  }
}

TEST_F(GroupTest, ErrorWithoutAMemberNamesNone) {
  group();
  release(kError | std::uint64_t{GBA_ERROR_RESET} << 56 | 4);
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_ERROR_CODE] =
      GBA_ERROR_RESET | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, 0xffff);
  EXPECT_THAT(group().describe(group().test(5), 5).text, HasSubstr("was reset; the last one"));
}

TEST_F(GroupTest, TestFindsALostDeviceButReportsAnEarlierReleaseFirst) {
  group();
  release(1);
  state_->lose();
  EXPECT_EQ(group().test(1), std::errc{});
  std::errc now = Group::kNotYet;
  for (int i = 0; i < 5000 && now == Group::kNotYet; ++i) {
    now = group().test(2);
  }
  EXPECT_EQ(now, std::errc::no_such_device);
  EXPECT_EQ(group().test(1), std::errc{});
}

TEST_F(GroupTest, ArriveAndTestOnALostDeviceDoNotCrash) {
  group();
  device_->backend().declare_lost(Loss::kRemoved);
  state_->set_wakeup(GBA_WAKEUP_SLEEPING);
  group().arrive(1);
  EXPECT_EQ(group().test(1), std::errc::no_such_device);
  EXPECT_THAT(group().describe(std::errc::no_such_device, 1).text, HasSubstr("the device fake:0 is lost"));
}

TEST_F(GroupTest, DeviceThatIsAwakeIsNotKicked) {
  group();
  const unsigned calls = state_->calls;
  group().arrive(1);
  EXPECT_EQ(state_->calls, calls);
}

TEST_F(GroupTest, DeviceThatSleepsIsKickedByARegister) {
  group();
  state_->set_wakeup(GBA_WAKEUP_SLEEPING);
  group().arrive(1);
  EXPECT_EQ(state_->count("kick"), 1U);
}

TEST_F(GroupTest, DeviceThatSleepsIsKickedByItsEventfdIfItHasOne) {
  state_->kick = base::UniqueFd(::eventfd(0, EFD_NONBLOCK));
  group();
  state_->set_wakeup(GBA_WAKEUP_SLEEPING);
  group().arrive(1);
  eventfd_t kicks = 0;
  ASSERT_EQ(::eventfd_read(state_->kick.get(), &kicks), 0);
  EXPECT_EQ(kicks, 1U);
  EXPECT_EQ(state_->count("kick"), 0U);
}

/// Spins first, so that both sides run at the same moment; then yields, in case they share a processor.
std::uint64_t spin_until_next(const std::atomic<std::uint64_t>& word, std::uint64_t value) {
  for (int i = 0; word.load() < value; ++i) {
    if (i < 1000) {
      base::pause_processor();
    } else {
      std::this_thread::yield();
    }
  }
  return word.load();
}

// uapi rule 14 from both sides at once: the device sets WAKEUP and looks once more while the member arrives. Either the
// device sees the arrival or the member sees WAKEUP; without the member's fence, sometimes neither does.
TEST_F(GroupTest, NoArrivalIsLostWhileTheDeviceFallsAsleep) {
  constexpr std::uint64_t kEnd = UINT64_MAX;
  state_->kick = base::UniqueFd(::eventfd(0, EFD_NONBLOCK));
  group();
  std::atomic<std::uint64_t> started{0};
  std::atomic<std::uint64_t> looked{0};
  std::atomic<std::uint64_t> unseen{0};  // how often the device's last look missed the arrival
  std::thread device([&] {
    for (std::uint64_t k = 1;; ++k) {
      if (spin_until_next(started, k) == kEnd) {
        return;
      }
      state_->set_wakeup(GBA_WAKEUP_SLEEPING);
      ordering::doorbell_before_wakeup();
      if (doorbell() != arrival(k)) {
        unseen.fetch_add(1);
      }
      looked.store(k);
    }
  });
  std::uint64_t lost = 0;
  const Deadline enough = Deadline::after(milliseconds{500});  // the time of a round depends on the load
  for (std::uint64_t k = 1; k < 100 || !enough.passed(); ++k) {
    state_->set_wakeup(0);
    const std::uint64_t unseen_before = unseen.load();
    started.store(k);
    group().arrive(k);
    spin_until_next(looked, k);
    eventfd_t kicks = 0;
    const bool kicked = ::eventfd_read(state_->kick.get(), &kicks) == 0;
    if (unseen.load() != unseen_before && !kicked) {
      ++lost;
    }
  }
  started.store(kEnd);
  device.join();
  EXPECT_EQ(lost, 0U);
}

TEST_F(GroupTest, HardwareHasNoWakeupWord) {
  state_->control[GBA_REG_CAPS] &= ~GBA_CAPS_WAKEUP;
  group();
  state_->set_wakeup(GBA_WAKEUP_SLEEPING);
  group().arrive(1);
  EXPECT_EQ(state_->count("kick"), 0U);
}

TEST_F(GroupTest, SleepAsksForAnInterruptAndReturnsAfterItsTime) {
  EXPECT_EQ(group().sleep(1, milliseconds{1}), Group::kNotYet);
  EXPECT_EQ(doorbell(), arrival(1) | kNotify);
}

TEST_F(GroupTest, SleepOfAReleasedBarrierRingsNothing) {
  group();
  release(1);
  EXPECT_EQ(group().sleep(1, hours{1}), std::errc{});
  EXPECT_EQ(doorbell(), 0U);
}

TEST_F(GroupTest, SleepEndsWithTheInterruptAndDrainsIt) {
  group();
  std::thread device([&] {
    while (doorbell() != (arrival(1) | kNotify)) {
      std::this_thread::yield();
    }
    release(1);
    state_->interrupt(kGroup);
  });
  EXPECT_EQ(group().wait(1, Deadline::never()), std::errc{});
  device.join();
  EXPECT_EQ(group().sleep(2, milliseconds{1}), Group::kNotYet);
  eventfd_t left = 0;
  EXPECT_NE(::eventfd_read(state_->armed.at(kGroup), &left), 0);
}

TEST_F(GroupTest, SpuriousWakeIsNotARelease) {
  group();
  state_->interrupt(kGroup);
  EXPECT_EQ(group().sleep(1, hours{1}), Group::kNotYet);
}

TEST_F(GroupTest, WaitWorksWithoutInterrupts) {
  state_->vectors = 0;
  group();
  EXPECT_TRUE(state_->armed.empty());
  std::thread device([&] {
    while (doorbell() != (arrival(1) | kNotify)) {
      std::this_thread::yield();
    }
    release(1);
  });
  EXPECT_EQ(group().wait(1, Deadline::never()), std::errc{});
  device.join();
}

TEST_F(GroupTest, LostDeviceWakesASleeper) {
  group();
  std::thread device([&] {
    while (doorbell() == 0) {
      std::this_thread::yield();
    }
    state_->lose();
  });
  EXPECT_EQ(group().wait(1, Deadline::never()), std::errc::no_such_device);
  device.join();
}

TEST_F(GroupTest, OneSleepIsEnoughToFindTheLoss) {
  group();
  state_->lose();
  EXPECT_EQ(group().sleep(1, hours{1}), std::errc::no_such_device);
  EXPECT_TRUE(device_->backend().lost());
}

TEST_F(GroupTest, WaitEndsAtItsDeadlineAndNamesTheMissing) {
  group();
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_MEMBER_MASK] = 0xfff;
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_ARRIVED_MASK] = 0xf6f;
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_CONTROL] = GBA_CONTROL_ENABLE;
  const std::errc result = group().wait(17, Deadline::after(milliseconds{5}));
  ASSERT_EQ(result, std::errc::timed_out);
  const Error error = group().describe(result, 17);
  EXPECT_EQ(error.code, std::errc::timed_out);
  EXPECT_EQ(error.text, "gba: group 3: barrier 17 was not released in time: members 4 and 7 did not arrive");
}

TEST_F(GroupTest, TimeoutSaysThatTheGroupIsNotEnabledOrThatAllHaveArrived) {
  EXPECT_THAT(group().describe(std::errc::timed_out, 1).text, HasSubstr("in time: the group is not enabled"));
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_CONTROL] = GBA_CONTROL_ENABLE;
  EXPECT_THAT(group().describe(std::errc::timed_out, 1).text, HasSubstr("in time: all members have arrived by now"));
}

TEST_F(GroupTest, TimeoutOfAFailedGroupReportsTheFailure) {
  group();
  release(kError | std::uint64_t{GBA_ERROR_LEAVE} << 56 | 4);
  state_->control[GBA_GROUP_BASE(kGroup) + GBA_GROUP_ERROR_CODE] =
      GBA_ERROR_LEAVE | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, 2);
  EXPECT_EQ(group().describe(std::errc::timed_out, 5).code, std::errc::broken_pipe);
  EXPECT_EQ(group().describe(std::errc::timed_out, 4).code, std::errc::timed_out);
}

TEST_F(GroupTest, TimeoutOfALostDeviceReportsTheLoss) {
  group();
  device_->backend().declare_lost(Loss::kRemoved);
  EXPECT_EQ(group().describe(std::errc::timed_out, 1).code, std::errc::no_such_device);
}

TEST_F(GroupTest, WaitWithoutTimeTestsOnce) {
  group();
  EXPECT_EQ(group().wait(1, Deadline::after_ns(0)), std::errc::timed_out);
  release(1);
  EXPECT_EQ(group().wait(1, Deadline::after_ns(0)), std::errc{});
}

TEST_F(GroupTest, MissingReadsEveryWordOfAFullGroup) {
  group();
  const std::uint64_t base = GBA_GROUP_BASE(kGroup);
  for (std::uint64_t word = 0; word < 12; ++word) {
    state_->control[base + GBA_GROUP_MEMBER_MASK + 8 * word] = 0xff;
    state_->control[base + GBA_GROUP_ARRIVED_MASK + 8 * word] = word;
  }
  const auto missing = group().missing();
  ASSERT_TRUE(missing);
  for (std::uint64_t word = 0; word < 12; ++word) {
    EXPECT_EQ((*missing)[word], 0xff & ~word);
  }
}

TEST_F(GroupTest, ReleaseMakesEarlierStoresVisible) {
  group();
  int payload = 0;
  std::thread device([&] {
    for (std::uint64_t k = 1; k <= 200; ++k) {
      while ((device_->doorbell(kGroup).load() & 0xffffffff) != k) {
        std::this_thread::yield();
      }
      payload += 1;
      release(k);
      state_->interrupt(kGroup);
    }
  });
  for (std::uint64_t k = 1; k <= 200; ++k) {
    payload += 1;
    group().arrive(k);
    ASSERT_EQ(group().wait(k, Deadline::never()), std::errc{});
    ASSERT_EQ(payload, static_cast<int>(2 * k));
  }
  device.join();
}

}  // namespace
}  // namespace gba::test
