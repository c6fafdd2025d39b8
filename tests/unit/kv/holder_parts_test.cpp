// SPDX-License-Identifier: Apache-2.0
// The memory of a holder, and its events.
#include <gtest/gtest.h>

#include <random>

#include "kv/exchange/holder_arena.hpp"
#include "kv/exchange/holder_events.hpp"
#include "tests/unit/kv/holder_fixture.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using shmem::exchange::HolderArena;
using shmem::exchange::HolderEventReader;
using shmem::exchange::HolderEvents;
using shmem::exchange::kEvents;
using shmem::exchange::Key;
using shmem::exchange::Part;

TEST(HolderArena, TakesTheSmallestPartThatIsLargeEnough) {
  HolderArena arena;
  EXPECT_FALSE(arena.take(64));
  arena.grow({0, 64 * 10});
  std::vector<std::uint64_t> taken;
  for (int i = 0; i < 10; ++i) {
    taken.push_back(*arena.take(64));
  }
  EXPECT_FALSE(arena.take(64));
  arena.give({taken[1], taken[1] + 64});
  arena.give({taken[5], taken[5] + 64});
  arena.give({taken[6], taken[6] + 64});
  EXPECT_EQ(arena.at(taken[5])->size(), 128U);
  EXPECT_FALSE(arena.at(taken[4]));
  EXPECT_EQ(arena.take(64), taken[1]);
  EXPECT_EQ(arena.take(128), taken[5]);
  EXPECT_FALSE(arena.take(64));
}

/// Whatever is taken and given: no part is used twice, and all parts together are one again in the end.
TEST(HolderArena, NeitherLosesNorDoublesMemory) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 20;
  HolderArena arena;
  arena.grow({0, kSize});
  std::mt19937_64 random(47);
  std::vector<Part> used;
  std::vector<bool> is_used(kSize / 64);
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0) {
      const std::uint64_t size = HolderArena::rounded(1 + random() % 20'000);
      if (const auto begin = arena.take(size)) {
        used.push_back({*begin, *begin + size});
        for (std::uint64_t at = *begin; at < *begin + size; at += 64) {
          ASSERT_FALSE(is_used[at / 64]);
          is_used[at / 64] = true;
        }
      }
    } else if (!used.empty()) {
      std::swap(used[random() % used.size()], used.back());
      for (std::uint64_t at = used.back().begin; at < used.back().end; at += 64) {
        is_used[at / 64] = false;
      }
      arena.give(used.back());
      used.pop_back();
    }
  }
  for (const Part& part : used) {
    arena.give(part);
  }
  EXPECT_EQ(arena.take(kSize), 0U);
}

TEST(HolderEvents, AreReadInTheirOrder) {
  auto events = *HolderEvents::create();
  const auto reader = *HolderEventReader::open(events.file());
  std::uint64_t after = 0;
  std::size_t count = 9;
  std::vector<shmemx_exchange_event_t> got(10);
  EXPECT_TRUE(reader.read(after, got, count));
  EXPECT_EQ(count, 0U);
  for (std::uint64_t i = 1; i <= 15; ++i) {
    const std::string key = "key " + std::to_string(i);
    events.add(i % 2 == 0 ? SHMEMX_EXCHANGE_REMOVED : SHMEMX_EXCHANGE_STORED, *Key::make(key.data(), key.size()), i,
               2 * i);
  }
  EXPECT_TRUE(reader.read(after, got, count));
  EXPECT_EQ(count, 10U);
  EXPECT_EQ(after, 10U);
  EXPECT_TRUE(reader.read(after, std::span(got).subspan(5), count));
  EXPECT_EQ(count, 5U);
  EXPECT_EQ(got[9].number, 15U);
  EXPECT_EQ(got[9].kind, std::uint32_t{SHMEMX_EXCHANGE_STORED});
  EXPECT_EQ(got[8].kind, std::uint32_t{SHMEMX_EXCHANGE_REMOVED});
  EXPECT_EQ(got[9].layout, 15U);
  EXPECT_EQ(got[9].bytes, 30U);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(got[9].key.data), got[9].key.bytes), "key 15");
}

TEST(HolderEvents, ThatWereOverwrittenAreMissed) {
  auto events = *HolderEvents::create();
  const auto reader = *HolderEventReader::open(events.file());
  const Key key = *Key::make("key", 3);
  for (std::size_t i = 0; i < kEvents + 2; ++i) {
    events.add(SHMEMX_EXCHANGE_STORED, key, 1, 1);
  }
  std::vector<shmemx_exchange_event_t> got(4);
  std::size_t count = 0;
  std::uint64_t after = 1;
  EXPECT_FALSE(reader.read(after, got, count));
  after = 2;
  EXPECT_TRUE(reader.read(after, got, count));
  EXPECT_EQ(count, 4U);
  after = kEvents + 3;
  EXPECT_FALSE(reader.read(after, got, count)) << "of another holder";
}

TEST(ExchangeHolderEvents, FollowWhatIsListed) {
  const std::string name = exchange_name(320);
  Engine engine(name);
  Engine router(name);
  shmemx_exchange_position_t position{};
  std::vector<shmemx_exchange_event_t> got(16);
  const auto next = [&] {
    return shmemx_exchange_events(router.get(), &position, got.data(), got.size(), 20 * kSecond);
  };
  std::uint64_t first = 0;
  {
    const Holder holder(name);
    ASSERT_EQ(engine.put("before", "bytes"), 0);
    EXPECT_EQ(next(), -EOVERFLOW) << "the list comes first";
    EXPECT_EQ(position.number, 1U);
    first = position.holder;
    EXPECT_EQ(first, router.holder_stats().holder);
    EXPECT_EQ(shmemx_exchange_events(router.get(), &position, got.data(), got.size(), 0), 0);
    ASSERT_EQ(engine.put("stored", "bytes", 7), 0);
    ASSERT_EQ(engine.discard("before"), 0);
    ASSERT_EQ(next(), 2);
    EXPECT_EQ(got[0].number, 2U);
    EXPECT_EQ(got[0].kind, std::uint32_t{SHMEMX_EXCHANGE_STORED});
    EXPECT_EQ(got[0].layout, 7U);
    EXPECT_EQ(got[1].number, 3U);
    EXPECT_EQ(got[1].kind, std::uint32_t{SHMEMX_EXCHANGE_REMOVED});
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(got[1].key.data), got[1].key.bytes), "before");
  }
  EXPECT_EQ(next(), -ENOTCONN);
  const Holder holder(name);
  EXPECT_EQ(next(), -EOVERFLOW) << "another holder has other events";
  EXPECT_NE(position.holder, first);
  EXPECT_EQ(position.number, 0U);
}

}  // namespace
