// SPDX-License-Identifier: Apache-2.0
// What kv_shuffle --check finds, in a job of one PE.
#include "shmem/kv/program/expected.hpp"

#include <gmock/gmock.h>

namespace {

using kv_program::Cache;
using kv_program::Caches;
using kv_program::Expected;
using kv_program::Options;

class ExpectedTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { shmem_init(); }
  static void TearDownTestSuite() { shmem_finalize(); }

  ExpectedTest() {
    options_.shape = {6, 1, 4, 25, 1};  // 100 bytes, no multiple of the words that blocks are filled with
    caches_.emplace(options_);
    caches_->fill();
  }

  Options options_;
  std::optional<Caches> caches_;
  Expected expected_{1, 6};
};

TEST_F(ExpectedTest, FindsNothingWrongWithTheBeginning) {
  EXPECT_EQ(expected_.compare(*caches_), "");
}

TEST_F(ExpectedTest, FindsEachSingleWrongByte) {
  for (const Cache cache : {Cache::kK, Cache::kV}) {
    for (const std::size_t byte : {0U, 99U, 100U, 250U, 599U}) {
      caches_->block(cache, 0)[byte] ^= std::byte{1};
      EXPECT_EQ(expected_.compare(*caches_),
                "byte " + std::to_string(byte % 100) + " of block " + std::to_string(byte / 100) + " of the " +
                    (cache == Cache::kK ? "K" : "V") + " cache of PE 0 is not that of block " +
                    std::to_string(byte / 100) + " of PE 0");
      caches_->block(cache, 0)[byte] ^= std::byte{1};
    }
  }
}

TEST_F(ExpectedTest, FindsAMoveThatDidNotHappen) {
  expected_.apply({{0, 0, {1}, {4}}});
  EXPECT_EQ(expected_.compare(*caches_), "byte 0 of block 4 of the K cache of PE 0 is not that of block 1 of PE 0");
}

TEST_F(ExpectedTest, FollowsABlockThatIsMovedOn) {
  expected_.apply({{0, 0, {1}, {4}}});
  expected_.apply({{0, 0, {4}, {5}}});
  for (const Cache cache : {Cache::kK, Cache::kV}) {
    std::copy_n(caches_->block(cache, 1), 100, caches_->block(cache, 4));
    std::copy_n(caches_->block(cache, 1), 100, caches_->block(cache, 5));
  }
  EXPECT_EQ(expected_.compare(*caches_), "");
}

TEST_F(ExpectedTest, IgnoresTablesThatAreNotSent) {
  expected_.apply({{0, 1, {1}, {4}}});
  EXPECT_EQ(expected_.compare(*caches_), "");
}

}  // namespace
