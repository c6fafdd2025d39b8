// SPDX-License-Identifier: Apache-2.0
#include "driver/dma_memory.hpp"

#include <gtest/gtest.h>

#include "uapi/gba_device.h"

namespace gba {
namespace {

constexpr std::uint64_t kPage = IovaSpace::kPage;
constexpr std::uint64_t kFirst = 16 * kPage;

TEST(IovaSpace, AllocatesWholePagesInOrder) {
  IovaSpace space(kFirst, 8 * kPage);
  EXPECT_EQ(space.allocate(1).value(), kFirst);
  EXPECT_EQ(space.allocate(kPage + 1).value(), kFirst + kPage);
  EXPECT_EQ(space.allocate(kPage).value(), kFirst + 3 * kPage);
}

TEST(IovaSpace, ReusesAnAddressAsLateAsPossible) {
  IovaSpace space(kFirst, 3 * kPage);
  space.release(space.allocate(kPage).value());
  EXPECT_EQ(space.allocate(kPage).value(), kFirst + kPage);
  EXPECT_EQ(space.allocate(kPage).value(), kFirst + 2 * kPage);
  EXPECT_EQ(space.allocate(kPage).value(), kFirst);
}

TEST(IovaSpace, FindsTheHoleThatIsLargeEnough) {
  IovaSpace space(kFirst, 6 * kPage);
  const std::uint64_t one = space.allocate(kPage).value();
  (void)space.allocate(kPage).value();
  const std::uint64_t two = space.allocate(2 * kPage).value();
  (void)space.allocate(2 * kPage).value();
  space.release(one);
  space.release(two);
  EXPECT_EQ(space.allocate(2 * kPage).value(), two);
  EXPECT_EQ(space.allocate(kPage).value(), one);
}

TEST(IovaSpace, SaysWhenItIsFull) {
  IovaSpace space(kFirst, 2 * kPage);
  EXPECT_EQ(space.allocate(3 * kPage).error().code, std::errc::not_enough_memory);
  EXPECT_EQ(space.allocate(UINT64_MAX).error().code, std::errc::not_enough_memory);
  EXPECT_TRUE(space.allocate(2 * kPage));
  EXPECT_EQ(space.allocate(1).error().code, std::errc::not_enough_memory);
}

TEST(IovaSpace, NeverGivesTwoOwnersOneAddress) {
  IovaSpace space(kFirst, 64 * kPage);
  std::map<std::uint64_t, std::uint64_t> live;
  std::uint64_t random = 1;
  for (int i = 0; i < 20000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t size = ((random >> 33) % 5 + 1) * kPage;
    if (live.size() > 12 || (!live.empty() && (random >> 40) % 3 == 0)) {
      const auto victim = std::next(live.begin(), static_cast<long>((random >> 45) % live.size()));
      space.release(victim->first);
      live.erase(victim);
    } else if (const auto start = space.allocate(size)) {
      ASSERT_GE(*start, kFirst);
      ASSERT_LE(*start + size, kFirst + 64 * kPage);
      const auto after = live.lower_bound(*start);
      ASSERT_TRUE(after == live.end() || *start + size <= after->first);
      ASSERT_TRUE(after == live.begin() || std::prev(after)->second <= *start);
      live.emplace(*start, *start + size);
    }
  }
}

TEST(IovaSpace, AllocatesWholePagesOfTheIommu) {
  constexpr std::uint64_t kLarge = 16 * kPage;
  IovaSpace space(kLarge, 4 * kLarge, kLarge);
  EXPECT_EQ(space.allocate(1).value(), kLarge);
  EXPECT_EQ(space.allocate(kLarge + 1).value(), 2 * kLarge);
}

TEST(IovaWindow, LiesAbove4GibIfPossible) {
  const auto window = choose_window({});
  ASSERT_TRUE(window);
  EXPECT_EQ(window->first, UINT64_C(1) << 32);
  EXPECT_EQ(window->size, UINT64_C(1) << 37);
}

TEST(IovaWindow, StaysWithinWhatTheIommuCanMap) {
  // As on x86: a hole for interrupts, and 39 bits.
  const auto window = choose_window({.ranges = {{0, 0xfedfffff}, {0xfef00000, (UINT64_C(1) << 39) - 1}}});
  ASSERT_TRUE(window);
  EXPECT_EQ(window->first, UINT64_C(1) << 32);
  const auto small = choose_window({.ranges = {{0, 0xfedfffff}}});
  ASSERT_TRUE(small);
  EXPECT_EQ(small->first, kPage) << "never address 0";
  EXPECT_EQ(small->first + small->size, 0xfee00000U);
  const auto odd = choose_window({.ranges = {{UINT64_C(0x100000800), UINT64_C(0x1000037ff)}}});
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->first, UINT64_C(0x100001000));
  EXPECT_EQ(odd->size, 2 * kPage);
}

TEST(IovaWindow, LiesWithinWhatEveryDeviceCanReach) {
  constexpr std::uint64_t kEnd = UINT64_C(1) << GBA_DMA_ADDRESS_BITS;
  const auto top = choose_window({.ranges = {{kEnd - kPage, UINT64_MAX}}});
  ASSERT_TRUE(top);
  EXPECT_EQ(top->size, kPage);
  EXPECT_FALSE(choose_window({.ranges = {{kEnd, UINT64_MAX}}}));
  EXPECT_FALSE(choose_window({.ranges = {{UINT64_MAX - kPage + 1, UINT64_MAX}}}));
}

TEST(IovaWindow, IsRefusedIfNothingFits) {
  EXPECT_FALSE(choose_window({.ranges = {}}));
  EXPECT_FALSE(choose_window({.ranges = {{0, kPage - 1}}}));
  EXPECT_FALSE(choose_window({.ranges = {{0, 0xffff}}, .page = 0x10000}));
}

}  // namespace
}  // namespace gba
