// SPDX-License-Identifier: Apache-2.0
// Shuffles by pair tables: every byte of every cache is compared with a copy made block by block.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "tests/support/sanitized.hpp"
#include "tests/unit/kv/shuffles.hpp"

namespace {

using namespace kv_test;  // NOLINT(google-build-using-namespace): what the test is about

/// Makes in `caches` the copies that the shuffle must make.
void copy_in_order(Caches& caches, std::size_t v_offset, std::size_t block_bytes,
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

/// Random pairs in a random direction, some of them idle. If the number of PEs is odd, one is paired with itself.
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

Shape apart(int blocks, int heads, int page, int head_dim, int element_size) {
  return {Format::kApart, 1, blocks, heads, page, head_dim, element_size};
}

struct PairCase {
  int pes, cores;
  Shape shape;
  int pes_a_node = 0;
  std::set<int> private_pes{};  // whose caches are private memory
};

class PairShuffleTest : public testing::TestWithParam<PairCase> {};

TEST_P(PairShuffleTest, MovesExactlyTheBlocksOfTheTables) {
  const auto& [pes, cores, shape, pes_a_node, private_pes] = GetParam();
  PlayedPes played{pes, OperatorSettings{.cores = cores}, shape, pes_a_node};
  played.private_caches.pes = private_pes;
  std::mt19937 random{static_cast<unsigned>(pes * 100 + cores)};
  auto expected = played.all_caches();
  for (int round = 0; round < (test_support::kSanitized ? 5 : 20); ++round) {
    const auto pairs = random_pairs(pes, random);
    std::vector<Blocks> blocks;
    blocks.reserve(expected.size());
    for (int pe = 0; pe < pes; ++pe) {
      blocks.push_back(random_blocks(shape.blocks, random));
    }
    ASSERT_THAT(played.run(pairs, blocks), kNoErrors);
    copy_in_order(expected, played.buffer_bytes(), shmem::kv::layout_of(shape)->chunk, pairs, blocks);
    ASSERT_TRUE(played.all_caches() == expected) << "round " << round;
    ASSERT_FALSE(played.traffic.told_early);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PairShuffleTest,
                         testing::Values(PairCase{2, 1, apart(5, 2, 4, 16, 1)}, PairCase{2, 16, apart(8, 8, 16, 16, 1)},
                                         PairCase{3, 4, apart(4, 1, 8, 32, 2)}, PairCase{4, 2, apart(6, 3, 5, 7, 4)},
                                         PairCase{5, 7, apart(7, 1, 1, 1, 1)}, PairCase{6, 6, apart(5, 3, 11, 37, 2)},
                                         PairCase{2, 4, apart(3, 8, 128, 128, 1)},
                                         PairCase{2, 6, apart(3, 7, 13, 501, 4)},
                                         PairCase{1, 2, apart(4, 1, 4, 4, 4)}));

INSTANTIATE_TEST_SUITE_P(Nodes, PairShuffleTest,
                         testing::Values(PairCase{2, 1, apart(5, 2, 4, 16, 1), 1},
                                         PairCase{3, 4, apart(4, 1, 8, 32, 2), 1},
                                         PairCase{4, 2, apart(6, 3, 5, 7, 4), 2},
                                         PairCase{5, 7, apart(7, 1, 1, 1, 1), 2}));

INSTANTIATE_TEST_SUITE_P(PrivateMemory, PairShuffleTest,
                         testing::Values(PairCase{2, 1, apart(5, 2, 4, 16, 1), 0, {0, 1}},
                                         PairCase{3, 4, apart(4, 1, 8, 32, 2), 0, {1}},
                                         PairCase{2, 4, apart(3, 8, 128, 128, 1), 0, {1}},
                                         PairCase{5, 7, apart(7, 1, 1, 1, 1), 2, {0, 3, 4}}));

TEST(PairTable, CountsSenders) {
  const std::vector<std::int64_t> numbers{1, 0, 0, 1, 3, 1, 2, 0, 4, 1, 6, 1, 5, 2};
  EXPECT_EQ(shmem::kv::PairTable(numbers.data(), 7).senders(), 2);
}

TEST(PairShuffle, CopiesOneBlockToSeveralPlaces) {
  PlayedPes played{2, OperatorSettings{.cores = 2}, kSmall};
  const auto source = played.caches(0);
  ASSERT_THAT(played.run(kZeroSendsToOne, {Blocks{{2, 2, 2}, {0, 1, 3}}, Blocks{}}), kNoErrors);
  constexpr std::size_t kBlock = 64;
  for (const std::size_t block : {0U, 1U, 3U}) {
    EXPECT_EQ(std::memcmp(played.k(1) + kBlock * block, &source[kBlock * 2], kBlock), 0);
    EXPECT_EQ(std::memcmp(played.v(1) + kBlock * block, &source[played.buffer_bytes() + kBlock * 2], kBlock), 0);
  }
}

TEST(PairShuffle, HasTheSameResultWhenRepeated) {
  PlayedPes played{2, OperatorSettings{.cores = 4}, kSmall};
  const std::vector<Blocks> blocks{{}, Blocks{{0, 1}, {2, 3}}};
  ASSERT_THAT(played.run({1, 1, 0, 0}, blocks), kNoErrors);
  const auto once = played.all_caches();
  for (int i = 0; i < 9; ++i) {
    ASSERT_THAT(played.run({1, 1, 0, 0}, blocks), kNoErrors);
  }
  EXPECT_TRUE(played.all_caches() == once);
}

TEST(PairShuffle, MayHaveNothingToSend) {
  PlayedPes played{2, OperatorSettings{.cores = 2}, kSmall};
  const auto before = played.all_caches();
  EXPECT_THAT(played.run(kZeroSendsToOne, {Blocks{}, Blocks{}}), kNoErrors);
  EXPECT_TRUE(played.all_caches() == before);
}

TEST(PairShuffle, IgnoresTheBlockTablesOfAPeThatDoesNotSend) {
  PlayedPes played{2, OperatorSettings{.cores = 2}, kSmall};
  const auto before = played.all_caches();
  EXPECT_THAT(played.run({1, 1, 0, 1}, {Blocks{{99}, {-1}}, Blocks{{0}, {0}}}), kNoErrors);
  EXPECT_TRUE(played.all_caches() == before);
}

TEST(PairShuffle, AnIdlePeDoesNotWaitForItsPartner) {
  PlayedPes played{2, OperatorSettings{.cores = 2}, kSmall};
  const std::vector<std::int64_t> pairs{1, 1, 0, 1};
  const auto table = played.table(0, pairs, {});
  EXPECT_EQ(played.run_one(0, {played.cache(0), nullptr, &table}).text, "");
}

TEST(PairShuffle, ASinglePeMayBePairedWithItself) {
  PlayedPes played{1, OperatorSettings{.cores = 2}, kSmall};
  EXPECT_THAT(played.run({0, 1}, {Blocks{}}), kNoErrors);
}

}  // namespace
