// SPDX-License-Identifier: Apache-2.0
// An open round: its registers, and how it ends when not all members arrive.
#include "tests/integration/fake_device/device_fixture.hpp"

namespace {

using raw::DeviceTest;
using raw::Port;

constexpr std::uint64_t kMillisecond = 1'000'000;

/// Three members, the last of which may be late.
class OpenRound : public DeviceTest {
 protected:
  OpenRound() : owner_(path()), second_(path()), third_(path()), group_(owner_.make_group(3)) {
    owner_.join(group_, 0);
    second_.join(group_, 1);
    third_.join(group_, 2);
    const std::array<int, 1> events{error_event_.get()};
    second_.arm(GBA_IRQ_MSIX, GBA_MSIX_ERROR_VECTOR, events);
  }

  std::uint64_t get(std::uint64_t offset, std::uint32_t size = 8) {
    return owner_.read(GBA_GROUP_BASE(group_.id) + offset, size);
  }
  void set(std::uint64_t offset, std::uint64_t value) { owner_.write(GBA_GROUP_BASE(group_.id) + offset, value); }
  void arrive_all(std::uint64_t sequence) {
    owner_.arrive(group_, 0, sequence);
    second_.arrive(group_, 1, sequence);
    third_.arrive(group_, 2, sequence);
  }
  void arrive_two(std::uint64_t sequence) {
    owner_.arrive(group_, 0, sequence);
    second_.arrive(group_, 1, sequence);
  }
  static std::uint64_t error_word(std::uint64_t code, std::uint64_t sequence) {
    return GBA_FIELD_PUT(GBA_FLAG_ERROR, 1) | GBA_FIELD_PUT(GBA_FLAG_CODE, code) | sequence;
  }
  /// Expects the error release at the first two members, at the second with an interrupt.
  void expect_error(std::uint64_t code, std::uint64_t sequence, unsigned member) {
    const auto word = error_word(code, sequence);
    EXPECT_EQ(owner_.wait_flag(group_, sequence), word);
    EXPECT_EQ(second_.wait_flag(group_, sequence), word);
    EXPECT_GE(raw::wait_event(error_event_.get()), 1U);
    EXPECT_EQ(get(GBA_GROUP_STATUS), GBA_STATUS_ERROR);
    EXPECT_EQ(get(GBA_GROUP_ERROR_CODE),
              GBA_FIELD_PUT(GBA_ERROR_CODE_CODE, code) | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, member));
    EXPECT_EQ(get(GBA_GROUP_SEQUENCE), sequence);
  }

  static constexpr unsigned kNoMember = 0xffff;
  static constexpr std::uint64_t kDmaFault = GBA_ERROR_DMA_FAULT;
  raw::Fd error_event_ = raw::make_eventfd();
  Port owner_;
  Port second_;
  Port third_;
  Port::Group group_;
};

TEST_F(OpenRound, IsReadyThenActiveThenComplete) {
  EXPECT_EQ(get(GBA_GROUP_STATUS), GBA_STATUS_READY);
  arrive_two(1);
  EXPECT_EQ(second_.read(GBA_REG_FAULT), 0U) << "the device answers after it has seen the doorbell";
  EXPECT_EQ(get(GBA_GROUP_STATUS), GBA_STATUS_ACTIVE);
  EXPECT_EQ(get(GBA_GROUP_ARRIVAL_COUNT, 4), 2U);
  EXPECT_EQ(get(GBA_GROUP_ARRIVED_MASK), 0b011U) << "the third is the straggler";
  third_.arrive(group_, 2, 1);
  EXPECT_EQ(third_.wait_flag(group_, 0), 1U);
  EXPECT_EQ(get(GBA_GROUP_STATUS), GBA_STATUS_READY | GBA_STATUS_COMPLETE);
  EXPECT_EQ(get(GBA_GROUP_ARRIVED_MASK), 0U);
  EXPECT_EQ(get(GBA_GROUP_SEQUENCE), 1U);
}

TEST_F(OpenRound, TimesOutAlthoughTheDeviceSleeps) {
  arrive_all(1);
  EXPECT_EQ(third_.wait_flag(group_, 0), 1U);
  set(GBA_GROUP_TIMEOUT, 2000 * kMillisecond);
  arrive_two(2);
  expect_error(GBA_ERROR_TIMEOUT, 1, 2);
  EXPECT_EQ(third_.wait_flag(group_, 1), error_word(GBA_ERROR_TIMEOUT, 1)) << "the late member";
  EXPECT_EQ(owner_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_TIMEOUT));
  EXPECT_EQ(owner_.read(GBA_REG_COUNTER_TIMEOUTS), 1U);
}

TEST_F(OpenRound, EndsInAnErrorWhenItsGroupIsReset) {
  arrive_two(1);
  set(GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_RESET);
  expect_error(GBA_ERROR_RESET, 0, kNoMember);
  third_.arrive(group_, 2, 1);
  EXPECT_EQ(third_.wait_flag(group_, 0), error_word(GBA_ERROR_RESET, 0)) << "sticky";
  EXPECT_EQ(get(GBA_GROUP_SEQUENCE), 0U);
}

TEST_F(OpenRound, EndsInAnErrorWhenAMemberLeaves) {
  arrive_two(1);
  EXPECT_EQ(third_.command(GBA_CMD_LEAVE, group_.id), unsigned{GBA_CMD_OK});
  expect_error(GBA_ERROR_LEAVE, 0, 2);
}

TEST_F(OpenRound, EndsInAnErrorWhenAMembersPortIsReset) {
  arrive_two(1);
  EXPECT_EQ(third_.client().call(VFIO_USER_DEVICE_RESET, {}).error(), 0);
  expect_error(GBA_ERROR_LEAVE, 0, 2);
}

TEST_F(OpenRound, EndsInAnErrorWhenAMembersMemoryIsUnmapped) {
  arrive_all(1);
  EXPECT_EQ(third_.wait_flag(group_, 0), 1U);
  ASSERT_EQ(third_.unmap_dma(raw::kFlagIova, 0x1000), 0);
  arrive_all(2);
  EXPECT_EQ(owner_.wait_flag(group_, 1) & GBA_FLAG_SEQUENCE_MASK, 2U) << "the round itself was released";
  EXPECT_EQ(third_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(third_.read(GBA_REG_FAULT_ADDR), raw::kFlagIova + std::uint64_t{group_.id} * GBA_FLAG_STRIDE);
  EXPECT_EQ(get(GBA_GROUP_ERROR_CODE),
            GBA_FIELD_PUT(GBA_ERROR_CODE_CODE, kDmaFault) | GBA_FIELD_PUT(GBA_ERROR_CODE_MEMBER, 2));
}

TEST_F(OpenRound, EndsInAnErrorWhenAMemberLosesBusMaster) {
  arrive_all(1);
  EXPECT_EQ(third_.wait_flag(group_, 0), 1U);
  third_.write(0x04, 0x2, 2, GBA_REGION_CONFIG);
  arrive_all(2);
  EXPECT_EQ(owner_.wait_flag(group_, 1) & GBA_FLAG_SEQUENCE_MASK, 2U);
  EXPECT_EQ(third_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_DMA));
  EXPECT_EQ(third_.flag(group_), 1U) << "the device stored nothing in its memory";
}

TEST_F(OpenRound, EndsInAnErrorWhenItsOwnerFreesTheGroup) {
  arrive_two(1);
  EXPECT_EQ(owner_.command(GBA_CMD_FREE, group_.id), unsigned{GBA_CMD_OK});
  EXPECT_EQ(second_.wait_flag(group_, 0), error_word(GBA_ERROR_LEAVE, 0));
  EXPECT_EQ(second_.command(GBA_CMD_LEAVE, group_.id), unsigned{GBA_CMD_ERROR_GROUP});
}

TEST_F(OpenRound, IsTheLastOneOfAGroupThatIsNotArmed) {
  set(GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE);
  arrive_all(1);
  EXPECT_EQ(third_.wait_flag(group_, 0), 1U);
  EXPECT_EQ(get(GBA_GROUP_CONTROL), 0U);
  EXPECT_EQ(get(GBA_GROUP_STATUS), GBA_STATUS_COMPLETE);
  second_.arrive(group_, 1, 2);
  EXPECT_EQ(second_.read(GBA_REG_FAULT), GBA_FAULT_BIT(GBA_FAULT_NOT_ENABLED));
}

TEST_F(OpenRound, IsForgottenWhenTheGroupIsDisabledAndCanBeOpenedAgain) {
  arrive_two(1);
  EXPECT_EQ(second_.read(GBA_REG_FAULT), 0U);
  set(GBA_GROUP_CONTROL, 0);
  EXPECT_EQ(get(GBA_GROUP_ARRIVAL_COUNT, 4), 0U);
  set(GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM);
  arrive_all(1);
  EXPECT_EQ(owner_.wait_flag(group_, 0), 1U);
}

}  // namespace
