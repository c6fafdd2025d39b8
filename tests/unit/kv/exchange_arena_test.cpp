// SPDX-License-Identifier: Apache-2.0
// The memory of kv_exchange serve, and sizes that other members claim.
#include "tools/kv_exchange/arena.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace {

using kv_exchange::Arena;

TEST(ExchangeArena, DividesAndJoinsMemory) {
  Arena arena(256);
  EXPECT_EQ(arena.allocate(100), 0U);
  EXPECT_EQ(arena.allocate(128), 128U);
  EXPECT_EQ(arena.allocate(1), std::nullopt);
  arena.release(0, 100);
  arena.release(128, 128);
  EXPECT_EQ(arena.allocate(256), 0U);
}

TEST(ExchangeArena, HasNoRoomForMoreThanItsSize) {
  for (const std::size_t bytes : {std::size_t{SIZE_MAX}, std::size_t{SIZE_MAX} - 62, std::size_t{SIZE_MAX} - 63,
                                  std::size_t{SIZE_MAX} / 2, std::size_t{4097}}) {
    Arena arena(4096);
    EXPECT_EQ(arena.allocate(bytes), std::nullopt) << bytes;
    EXPECT_EQ(arena.allocate(4096), 0U) << bytes << ": nothing of it was taken";
  }
}

}  // namespace
