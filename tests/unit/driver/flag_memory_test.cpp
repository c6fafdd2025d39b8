// SPDX-License-Identifier: Apache-2.0
// Where releases land, and what is done where one of the places is not to be had.
#include "driver/flag_memory.hpp"

#include <gmock/gmock.h>

#include "tests/unit/driver/device_fixture.hpp"

namespace gba::test {
namespace {

constexpr std::uint32_t kGroup = 3;

class FlagPlaceTest : public testing::Test {
 protected:
  FlagPlaceTest() {
    state_->regions[GBA_REGION_FLAGS] = {.size = GBA_BAR4_SIZE, .mappable = true};
    state_->control[GBA_REG_CAPS] |= GBA_CAPS_BAR_FLAGS;
  }
  /// The place that a device opened so has.
  FlagPlace place(FlagPlace wanted) {
    auto device = open_fake(state_, wanted);
    EXPECT_TRUE(device) << device.error().text;
    return device ? (*device)->flags().place() : FlagPlace::kAuto;
  }
  Error refusal(FlagPlace wanted) {
    auto device = open_fake(state_, wanted);
    return device ? Error{} : device.error();
  }

  std::shared_ptr<FakeState> state_ = std::make_shared<FakeState>();
};

TEST_F(FlagPlaceTest, IsHostMemoryUnlessThatCannotBeHad) {
  EXPECT_EQ(place(FlagPlace::kAuto), FlagPlace::kHost);
  EXPECT_EQ(place(FlagPlace::kHost), FlagPlace::kHost);
  EXPECT_EQ(state_->count("dma_unmap"), 2U) << "closing takes the memory back";
  state_->gives_dma = false;
  EXPECT_EQ(place(FlagPlace::kAuto), FlagPlace::kBar);
  EXPECT_EQ(refusal(FlagPlace::kHost).code, std::errc::operation_not_permitted);
}

TEST_F(FlagPlaceTest, IsDeviceMemoryWhereThatIsWanted) {
  EXPECT_EQ(place(FlagPlace::kBar), FlagPlace::kBar);
  EXPECT_EQ(state_->count("dma_map"), 0U);
}

TEST_F(FlagPlaceTest, IsRefusedWhereThereIsNone) {
  state_->control[GBA_REG_CAPS] &= ~GBA_CAPS_BAR_FLAGS;
  EXPECT_EQ(refusal(FlagPlace::kBar).code, std::errc::not_supported);
  state_->control[GBA_REG_CAPS] |= GBA_CAPS_BAR_FLAGS;
  state_->regions[GBA_REGION_FLAGS].mappable = false;
  EXPECT_THAT(refusal(FlagPlace::kBar).text, testing::HasSubstr("has none that can be mapped"));
  state_->gives_dma = false;
  EXPECT_EQ(refusal(FlagPlace::kAuto).code, std::errc::operation_not_permitted)
      << "the first reason is the one to mend";
}

TEST_F(FlagPlaceTest, InDeviceMemoryIsTheGroupsSlot) {
  const std::shared_ptr<Device> device = open_fake(state_, FlagPlace::kBar).value();
  const gba_group_handle handle{.group = kGroup, .key = 1, .member_count = 12, .reserved = 0, .sequence = 0};
  auto membership = Membership::join(device, handle, 7);
  ASSERT_TRUE(membership) << membership.error().text;
  EXPECT_EQ(state_->release_address(kGroup, 7), GBA_RELEASE_ADDR_BAR_FLAGS);
  // The fake's regions are all one file.
  MmioRegion(state_->doorbells.bytes()).word<std::uint64_t>(kGroup * GBA_FLAG_STRIDE).store(42);
  EXPECT_EQ(membership->flag().load(), 42U);
}

TEST_F(FlagPlaceTest, InHostMemoryIsAsLargeAsAPageOfTheIommu) {
  FakeBackend backend(state_);
  IovaSpace iovas(UINT64_C(1) << 32, UINT64_C(1) << 30, 0x10000);
  FlagMemory flags(backend, iovas, 0x10000);
  ASSERT_TRUE(flags.choose(FlagPlace::kHost, false));
  const auto line = flags.take(kGroup);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->word().load(), FlagMemory::kPoison);
  EXPECT_GE(state_->dma.begin()->second.memory.size(), 0x10000U);
}

class HugeFlagsTest : public FlagPlaceTest {
 protected:
  static constexpr std::size_t kSmall = FlagMemory::kPageSize;
  /// Of the memory that a device opened so has mapped for DMA.
  std::size_t mapped() {
    auto device = open_fake(state_, FlagPlace::kHost);
    EXPECT_TRUE(device) << device.error().text;
    return state_->dma.begin()->second.memory.size();
  }
  static bool system_has_huge_pages() {
    const auto page = make_sealed_huge_page("probe");
    return page && Mapping::share(page->fd.get(), 0, page->size, "probe");
  }
};

TEST_F(HugeFlagsTest, AreForDevicesBehindAnIommu) {
  EXPECT_EQ(mapped(), kSmall);
  state_ = std::make_shared<FakeState>();
  state_->behind_iommu = true;
  EXPECT_EQ(mapped() > kSmall, system_has_huge_pages());
}

TEST_F(HugeFlagsTest, GiveWayToSmallOnesWhereTheyAreTooLarge) {
  state_->behind_iommu = true;
  state_->largest_dma = kSmall;
  EXPECT_EQ(mapped(), kSmall);
}

}  // namespace
}  // namespace gba::test
