// SPDX-License-Identifier: Apache-2.0
// Blocks that arrive: every byte of every cache is compared with a copy made one block after the other.
#include "shmem/kv/shuffle.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "tests/unit/kv/played_pes.hpp"

namespace {

using kv_test::Blocks;
using kv_test::PlayedPes;
using shmem::kv::CacheShape;
using testing::Each;
using testing::Field;
using testing::IsEmpty;

const auto kNoErrors = Each(Field(&shmem::Error::text, IsEmpty()));

std::vector<std::vector<std::byte>> all_caches(PlayedPes& pes) {
  std::vector<std::vector<std::byte>> caches;
  caches.reserve(static_cast<std::size_t>(pes.pes()));
  for (int pe = 0; pe < pes.pes(); ++pe) {
    caches.push_back(pes.caches(pe));
  }
  return caches;
}

/// What the caches must hold afterwards.
void copy_in_order(std::vector<std::vector<std::byte>>& caches, std::size_t v_offset, std::size_t block_bytes,
                   const std::vector<std::int64_t>& pairs, const std::vector<Blocks>& blocks) {
  for (std::size_t pe = 0; pe < caches.size(); ++pe) {
    if (pairs[2 * pe + 1] != 0) {
      continue;
    }
    auto& partner = caches[static_cast<std::size_t>(pairs[2 * pe])];
    for (std::size_t i = 0; i < blocks[pe].source.size(); ++i) {
      const auto from = static_cast<std::size_t>(blocks[pe].source[i]) * block_bytes;
      const auto to = static_cast<std::size_t>(blocks[pe].destination[i]) * block_bytes;
      std::memcpy(&partner[to], &caches[pe][from], block_bytes);
      std::memcpy(&partner[v_offset + to], &caches[pe][v_offset + from], block_bytes);
    }
  }
}

/// Random pairs, some idle and, of an odd number, one with itself; each pair once in either direction.
std::vector<std::int64_t> random_pairs(int pes, std::mt19937& random) {
  std::vector<int> order(static_cast<std::size_t>(pes));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::int64_t> pairs(2 * order.size(), 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int mine = order[i];
    const int partner = i + 1 == order.size() && order.size() % 2 != 0 ? mine : order[i ^ 1];
    pairs[2 * static_cast<std::size_t>(mine)] = partner;
    const bool idle = random() % 4 == 0;
    const bool sends = i % 2 == 0 && partner != mine && !idle;
    pairs[2 * static_cast<std::size_t>(mine) + 1] = sends ? 0 : 1 + static_cast<std::int64_t>(random() % 3);
  }
  return pairs;
}

Blocks random_blocks(std::int64_t blocks, std::mt19937& random) {
  Blocks result;
  result.destination.resize(static_cast<std::size_t>(blocks));
  std::iota(result.destination.begin(), result.destination.end(), 0);
  std::shuffle(result.destination.begin(), result.destination.end(), random);
  result.destination.resize(random() % (result.destination.size() + 1));
  for (std::size_t i = 0; i < result.destination.size(); ++i) {
    result.source.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(blocks)));
  }
  return result;
}

struct Case {
  int pes, cores;
  CacheShape shape;
};

class ShuffleTest : public testing::TestWithParam<Case> {};

TEST_P(ShuffleTest, MovesWhatTheTablesSayAndNothingElse) {
  const auto& [pes, cores, shape] = GetParam();
  PlayedPes played{pes, cores, shape};
  std::mt19937 random{static_cast<unsigned>(pes * 100 + cores)};
  auto expected = all_caches(played);
  for (int round = 0; round < 20; ++round) {
    const auto pairs = random_pairs(pes, random);
    std::vector<Blocks> blocks;
    blocks.reserve(expected.size());
    for (int pe = 0; pe < pes; ++pe) {
      blocks.push_back(random_blocks(shape.blocks, random));
    }
    ASSERT_THAT(played.run(pairs, blocks), kNoErrors);
    copy_in_order(expected, played.cache_bytes(), shmem::kv::cache_size(shape)->block_bytes, pairs, blocks);
    ASSERT_TRUE(all_caches(played) == expected) << "round " << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ShuffleTest,
                         testing::Values(Case{2, 2, {5, 2, 4, 16, 1}}, Case{2, 16, {8, 8, 16, 16, 1}},
                                         Case{3, 4, {4, 1, 8, 32, 2}}, Case{4, 2, {6, 3, 5, 7, 4}},
                                         Case{5, 6, {7, 1, 1, 1, 1}}, Case{6, 6, {5, 3, 11, 37, 2}},
                                         Case{2, 4, {3, 8, 128, 128, 1}}, Case{2, 6, {3, 7, 13, 501, 4}},
                                         Case{1, 2, {4, 1, 4, 4, 4}}));

TEST(Slice, CoverTheBlockOnceInWholeLinesWithTheRemainderInTheLast) {
  for (const std::size_t bytes : {1U, 63U, 64U, 1000U, 4096U, 131072U, 131073U}) {
    for (const int parts : {1, 2, 3, 7, 8}) {
      std::size_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const auto slice = shmem::kv::slice_of(bytes, part, parts);
        EXPECT_EQ(slice.offset, next);
        EXPECT_EQ(slice.offset % 64, 0U);
        next += slice.size;
      }
      EXPECT_EQ(next, bytes) << parts << " parts";
    }
  }
}

TEST(Shuffle, CopiesOneBlockToSeveralPlaces) {
  PlayedPes played{2, 2, {4, 1, 4, 16, 1}};
  const auto source = played.caches(0);
  ASSERT_THAT(played.run({1, 0, 0, 1}, {Blocks{{2, 2, 2}, {0, 1, 3}}, Blocks{}}), kNoErrors);
  constexpr std::size_t kBlock = 64;
  for (const std::size_t block : {0U, 1U, 3U}) {
    EXPECT_EQ(std::memcmp(played.k(1) + kBlock * block, &source[kBlock * 2], kBlock), 0);
    EXPECT_EQ(std::memcmp(played.v(1) + kBlock * block, &source[played.cache_bytes() + kBlock * 2], kBlock), 0);
  }
}

TEST(Shuffle, IsTheSameWhenItIsRepeated) {
  PlayedPes played{2, 4, {4, 1, 4, 16, 1}};
  const std::vector<Blocks> blocks{{}, Blocks{{0, 1}, {2, 3}}};
  ASSERT_THAT(played.run({1, 1, 0, 0}, blocks), kNoErrors);
  const auto once = all_caches(played);
  for (int i = 0; i < 9; ++i) {
    ASSERT_THAT(played.run({1, 1, 0, 0}, blocks), kNoErrors);
  }
  EXPECT_TRUE(all_caches(played) == once);
}

TEST(Shuffle, MayHaveNothingToSend) {
  PlayedPes played{2, 2, {4, 1, 4, 16, 1}};
  const auto before = all_caches(played);
  EXPECT_THAT(played.run({1, 0, 0, 1}, {Blocks{}, Blocks{}}), kNoErrors);
  EXPECT_TRUE(all_caches(played) == before);
}

TEST(Shuffle, IgnoresTheBlockTablesOfAPeThatDoesNotSend) {
  PlayedPes played{2, 2, {4, 1, 4, 16, 1}};
  const auto before = all_caches(played);
  EXPECT_THAT(played.run({1, 1, 0, 1}, {Blocks{{99}, {-1}}, Blocks{{0}, {0}}}), kNoErrors);
  EXPECT_TRUE(all_caches(played) == before);
}

TEST(Shuffle, AnIdlePeDoesNotWaitForItsPartner) {
  PlayedPes played{2, 2, {4, 1, 4, 16, 1}};
  const std::vector<std::int64_t> pairs{1, 1, 0, 1};
  EXPECT_EQ(played.run_one(0, played.call(0, pairs, {})).text, "");
}

TEST(Shuffle, APeMayBeThereAlonePairedWithItself) {
  PlayedPes played{1, 2, {4, 1, 4, 16, 1}};
  EXPECT_THAT(played.run({0, 1}, {Blocks{}}), kNoErrors);
}

}  // namespace
