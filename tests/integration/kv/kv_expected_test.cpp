// SPDX-License-Identifier: Apache-2.0
// The errors that kv_shuffle --check finds, in a job of one PE.
#include "tools/kv_shuffle/caches.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace {

using kv_program::Cache;
using kv_program::Caches;
using kv_program::Expected;
using kv_program::Format;
using kv_program::Part;
using kv_program::Shape;
using Move = shmemx_kv_move_t;

/// Parts of 100 bytes, which is not a multiple of the words that fill them.
Shape shape(Format format) {
  return {.format = format, .element_size = 1, .layers = 2, .blocks = 6, .kv_heads = 1, .page_size = 4, .head_dim = 25};
}

class ExpectedTest : public testing::TestWithParam<Format> {
 protected:
  static void SetUpTestSuite() { shmem_init(); }
  static void TearDownTestSuite() { shmem_finalize(); }

  ExpectedTest() { caches_.fill(); }

  void copy(std::int64_t from, std::int64_t to) const {
    caches_.for_each_part(
        [&](Part part) { std::ranges::copy(caches_.bytes(part, from), caches_.bytes(part, to).begin()); });
  }

  const Caches caches_{shape(GetParam())};
  Expected expected_{1, 6};
};
INSTANTIATE_TEST_SUITE_P(Formats, ExpectedTest,
                         testing::Values(Format::kApart, Format::kByLayer, Format::kInterleaved, Format::kByBlock,
                                         Format::kLatent));

TEST_P(ExpectedTest, AcceptsTheInitialContents) {
  EXPECT_EQ(expected_.compare(caches_), "");
}

TEST_P(ExpectedTest, FindsEachSingleWrongByte) {
  caches_.for_each_part([&](Part part) {
    for (const std::int64_t block : {0, 5}) {
      for (const std::size_t byte : {0U, 50U, 99U}) {
        caches_.bytes(part, block)[byte] ^= std::byte{1};
        EXPECT_EQ(expected_.compare(caches_),
                  "byte " + std::to_string(byte) + " of block " + std::to_string(block) + " of layer " +
                      std::to_string(part.layer) + " of the " + (part.cache == Cache::kK ? "K" : "V") +
                      " cache of PE 0 is not that of block " + std::to_string(block) + " of PE 0");
        caches_.bytes(part, block)[byte] ^= std::byte{1};
      }
    }
  });
}

/// Every byte of the objects belongs to one part of one block.
TEST_P(ExpectedTest, CoversAllBytesOfACache) {
  const auto bytes = static_cast<std::size_t>(shape(GetParam()).bytes_of_object());
  std::vector<int> seen(2 * bytes);
  caches_.for_each_part([&](Part part) {
    for (std::int64_t block = 0; block < 6; ++block) {
      const std::byte* first = caches_.bytes(part, block).data();
      const bool in_v = caches_.v() != nullptr && first >= caches_.v() && first < caches_.v() + bytes;
      const auto at = static_cast<std::size_t>(in_v ? first - caches_.v() : first - caches_.k()) + (in_v ? bytes : 0);
      for (std::size_t i = at; i < at + 100; ++i) {
        ++seen[i];
      }
    }
  });
  const auto objects = caches_.v() != nullptr ? 2U : 1U;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(objects * bytes));
}

TEST_P(ExpectedTest, FindsAMoveThatDidNotHappen) {
  expected_.apply(std::vector<Move>{{0, 1, 0, 4}}, false);
  EXPECT_EQ(expected_.compare(caches_),
            "byte 0 of block 4 of layer 0 of the K cache of PE 0 is not that of block 1 of PE 0");
}

TEST_P(ExpectedTest, FollowsABlockThatIsMovedOn) {
  expected_.apply(std::vector<Move>{{0, 1, 0, 4}}, false);
  expected_.apply(std::vector<Move>{{0, 4, 0, 5}}, false);
  copy(1, 4);
  copy(1, 5);
  EXPECT_EQ(expected_.compare(caches_), "");
}

TEST_P(ExpectedTest, AppliesAllMovesOfAShuffleAtOnce) {
  expected_.apply(std::vector<Move>{{0, 1, 0, 2}, {0, 2, 0, 1}, {0, 2, 0, 3}}, false);
  copy(2, 3);
  copy(1, 2);
  copy(3, 1);
  EXPECT_EQ(expected_.compare(caches_), "");
}

TEST_P(ExpectedTest, ExpectsSourcesThatAreNotDestinationsToBeCleared) {
  expected_.apply(std::vector<Move>{{0, 0, 0, 1}, {0, 1, 0, 2}}, true);
  copy(1, 2);
  copy(0, 1);
  EXPECT_EQ(expected_.compare(caches_),
            "byte 0 of block 0 of layer 0 of the K cache of PE 0 is not that of a cleared block");
  caches_.for_each_part([&](Part part) { std::ranges::fill(caches_.bytes(part, 0), std::byte{}); });
  EXPECT_EQ(expected_.compare(caches_), "");
}

}  // namespace
