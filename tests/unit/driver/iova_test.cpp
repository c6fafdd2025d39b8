// SPDX-License-Identifier: Apache-2.0
#include "driver/iova.hpp"

#include <gtest/gtest.h>

namespace gba {
namespace {

constexpr std::uint64_t kPage = IovaSpace::kPage;
constexpr std::uint64_t kFirst = 16 * kPage;

TEST(IovaSpace, GivesWholePagesOneAfterTheOther) {
  IovaSpace space(kFirst, 8 * kPage);
  EXPECT_EQ(space.allocate(1).value(), kFirst);
  EXPECT_EQ(space.allocate(kPage + 1).value(), kFirst + kPage);
  EXPECT_EQ(space.allocate(kPage).value(), kFirst + 3 * kPage);
}

TEST(IovaSpace, UsesAnAddressAgainAsLateAsPossible) {
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

}  // namespace
}  // namespace gba
