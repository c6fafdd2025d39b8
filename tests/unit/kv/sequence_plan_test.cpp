// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/sequence_plan.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "tests/unit/kv/plan_checker.hpp"

namespace {

using kv_test::check_plan;
using kv_test::OwnedSequence;
using kv_test::views;
using shmem::kv::Mode;
using shmem::kv::Move;
using shmem::kv::plan_sequences;
using shmem::kv::Planner;
using shmem::kv::Planning;
using shmem::kv::SequencePlan;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::int64_t> range(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

/// Pages of ten tokens. The sequences of each PE lie one after the other from block 0.
class SequencePlanTest : public testing::Test {
 protected:
  void hold(std::int64_t pe, std::int64_t tokens, std::vector<std::uint64_t> hashes = {}) {
    used_.resize(std::max(used_.size(), static_cast<std::size_t>(pe) + 1));
    std::int64_t& used = used_[static_cast<std::size_t>(pe)];
    const std::int64_t blocks = (tokens + 9) / 10;
    sequences_.push_back({pe, tokens, range(used, blocks), std::move(hashes)});
    used += blocks;
    planning_.pes = std::max(planning_.pes, pe + 1);
  }

  SequencePlan plan() {
    auto made = plan_sequences(views(sequences_), planning_);
    EXPECT_TRUE(made) << made.error().text;
    if (!made) {
      return {};
    }
    EXPECT_EQ(check_plan(sequences_, planning_, *made), "");
    return *std::move(made);
  }

  void expect_refused(const std::string& reason) {
    const auto made = plan_sequences(views(sequences_), planning_);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().text, HasSubstr(reason));
    EXPECT_THAT(made.error().text, testing::StartsWith("cannot plan: "));
  }

  static std::vector<std::int64_t> blocks_of(const SequencePlan& plan, std::size_t sequence) {
    const auto blocks = plan.placements[sequence].blocks;
    return {blocks.begin(), blocks.end()};
  }

  Planning planning_{Planner::kBalanced, Mode::kCopy, 0, {100, 10}, 0};
  std::vector<OwnedSequence> sequences_;
  std::vector<std::int64_t> used_;
};

TEST_F(SequencePlanTest, FillsEachGapWithTheSequenceThatFillsItBest) {
  hold(0, 100), hold(0, 70), hold(0, 30), hold(0, 20);  // 220, mean 100
  hold(1, 30);                                          // 70 below
  hold(2, 50);                                          // 50 below
  const auto made = plan();
  EXPECT_THAT(made.moves.size(), 7 + 3 + 2);
  EXPECT_EQ(made.placements[0].pe, 0);
  EXPECT_EQ(made.placements[1].pe, 1);
  EXPECT_EQ(made.placements[2].pe, 2);
  EXPECT_EQ(made.placements[3].pe, 2);
  EXPECT_THAT(blocks_of(made, 1), testing::ElementsAreArray(range(3, 7)));
  EXPECT_EQ(made.summary.before.most, 220);
  EXPECT_EQ(made.summary.before.imbalance(), 240);
  EXPECT_EQ(made.summary.after.imbalance(), 0);
  EXPECT_EQ(made.summary.after.most_to_mean(), 1);
  EXPECT_EQ(made.summary.blocks_moved, 12);
  EXPECT_EQ(made.summary.sequences_moved, 3);
}

// 60 fills most of the gap of 80, but 50 and 30 fill it all.
TEST_F(SequencePlanTest, SendsTwoSequencesIfOneLeavesAGap) {
  hold(0, 60), hold(0, 50), hold(0, 30), hold(0, 40);
  hold(1, 20);
  const auto made = plan();
  EXPECT_EQ(made.summary.after.imbalance(), 0);
  EXPECT_EQ(made.placements[0].pe, 0);
}

TEST_F(SequencePlanTest, LetsNoPeCrossTheMean) {
  hold(0, 90), hold(0, 90);
  hold(1, 50);
  EXPECT_THAT(plan().moves, IsEmpty());
}

TEST_F(SequencePlanTest, LeavesPesWithinTheToleranceAlone) {
  hold(0, 520), hold(0, 10), hold(1, 510), hold(2, 500), hold(3, 500);
  planning_.tolerance = 0.05;
  EXPECT_THAT(plan().moves, IsEmpty());
  planning_.tolerance = 0.001;
  EXPECT_EQ(plan().moves.size(), 1U);
}

// One PE has far more than the mean, all others slightly less: no PE has a gap for 100 tokens.
TEST_F(SequencePlanTest, ToleranceLetsReceiversExceedTheMean) {
  for (int i = 0; i < 20; ++i) {
    hold(0, 100);
  }
  for (int pe = 1; pe <= 20; ++pe) {
    hold(pe, 990);
  }
  planning_.geometry.blocks = 1000;
  EXPECT_THAT(plan().moves, IsEmpty());
  planning_.tolerance = 0.1;
  const auto made = plan();
  EXPECT_LE(made.summary.after.most_to_mean(), 1.1);
  // As few as it takes to be within the tolerance.
  EXPECT_EQ(made.summary.sequences_moved, 9);
}

TEST_F(SequencePlanTest, SendsNoBlockThatTheReceiverHas) {
  hold(0, 60, {1, 2, 3, 4}), hold(0, 100);
  hold(1, 30);
  hold(2, 30, {1, 2, 3});
  hold(3, 140);
  const auto made = plan();
  // Both receivers have a gap of 60.
  ASSERT_EQ(made.placements[0].pe, 2);
  EXPECT_EQ(made.summary.blocks_spared, 3);
  EXPECT_THAT(made.moves, ElementsAre(Move{0, 3, 2, 3}, Move{0, 4, 2, 4}, Move{0, 5, 2, 5}));
  EXPECT_THAT(blocks_of(made, 0), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(SequencePlanTest, SequencesWithACommonPrefixMoveTogetherAndSendItOnce) {
  hold(0, 60, {1, 2, 3}), hold(0, 40, {1, 2, 3}), hold(0, 140);
  hold(1, 60);
  sequences_.push_back({2, 0, {}});
  planning_.pes = 3;
  const auto made = plan();
  // After the first one both PEs have a gap of 40.
  EXPECT_EQ(made.placements[0].pe, 2);
  EXPECT_EQ(made.placements[1].pe, 2);
  EXPECT_EQ(made.summary.blocks_moved, 6 + 1);
  EXPECT_EQ(made.summary.blocks_spared, 3);
}

TEST_F(SequencePlanTest, EqualBlocksOfOneSequenceAreSentOnce) {
  sequences_ = {{0, 40, {0, 1, 2, 3}, {7, 7, 8}}, {0, 40, {4, 5, 6, 7}}, {1, 0, {}}};
  planning_.pes = 2;
  const auto made = plan();
  EXPECT_EQ(made.summary.blocks_moved, 3);
  const auto table = blocks_of(made, 0);
  EXPECT_EQ(table[0], table[1]);
  // The resulting table is valid input.
  sequences_[0] = {1, 40, table, {7, 7, 8}};
  EXPECT_THAT(plan().moves, IsEmpty());
}

TEST_F(SequencePlanTest, SequencesMayShareTheBlocksOfACommonPrefix) {
  sequences_ = {{0, 40, {0, 1, 2, 3}, {7, 8}}, {0, 40, {0, 1, 4, 5}, {7, 8}}, {1, 0, {}}};
  planning_.pes = 2;
  EXPECT_EQ(plan().summary.sequences_moved, 1);
  // Not in move mode: clearing the sender's blocks would destroy the other sequence.
  planning_.mode = Mode::kMove;
  EXPECT_THAT(plan().moves, IsEmpty());
}

TEST_F(SequencePlanTest, EmptyBlocksAreKeptAndNotSent) {
  sequences_ = {{0, 15, {9, 4, 7}}, {0, 15, {2, 3}}, {1, 0, {0, 2}}};
  planning_.pes = 2;
  const auto made = plan();
  EXPECT_THAT(made.moves, ElementsAre(Move{0, 9, 1, 1}, Move{0, 4, 1, 3}));
  EXPECT_THAT(blocks_of(made, 0), ElementsAre(1, 3, 4));
  EXPECT_THAT(blocks_of(made, 2), ElementsAre(0, 2));
}

TEST_F(SequencePlanTest, AFullReceiverIsSkipped) {
  hold(0, 100), hold(0, 100);
  hold(1, 0), hold(2, 0), hold(3, 200);
  // PE 1, which would be first, has 5 of 20 blocks free.
  sequences_.push_back({1, 0, range(0, 15)});
  planning_.geometry.blocks = 20;
  const auto made = plan();
  EXPECT_EQ(made.placements[0].pe, 2);
  EXPECT_EQ(made.summary.sequences_moved, 1);
  sequences_.push_back({2, 0, range(0, 15)});
  EXPECT_THAT(plan().moves, IsEmpty());
}

TEST_F(SequencePlanTest, RefusesInvalidArguments) {
  expect_refused("0 PEs");
  planning_.pes = 2;
  expect_refused("there are no sequences");
  sequences_ = {{0, 5, {0}}};
  planning_.geometry.page = 0;
  expect_refused("2 PEs with caches of 100 blocks of 0 tokens");
  planning_.geometry.page = 10;
  for (const double tolerance : {-0.1, 1.1, std::nan("")}) {
    planning_.tolerance = tolerance;
    expect_refused("which is not in 0..1");
  }
}

TEST_F(SequencePlanTest, NamesAnInvalidSequence) {
  planning_.pes = 2;
  const auto refused = [&](OwnedSequence sequence, const std::string& reason) {
    sequences_ = {{0, 5, {0}}, std::move(sequence)};
    for (const Planner planner : {Planner::kPair, Planner::kBalanced}) {
      planning_.planner = planner;
      expect_refused(reason);
    }
  };
  refused({2, 5, {1}}, "sequence 1 is of PE 2, which is not in 0..1");
  refused({-1, 5, {1}}, "sequence 1 is of PE -1, which");
  refused({1, -5, {1}}, "sequence 1 (of PE 1) has -5 tokens");
  refused({1, 21, {1, 2}}, "has 21 tokens, which take 3 blocks of 10, and a block table of 2");
  refused({1, INT64_MAX, {1, 2}}, "which take 922337203685477581 blocks");
  refused({1, 20, {1, 100}}, "entry 1 of the block table is 100, not one of the cache's blocks 0..99");
  refused({1, 20, {-1, 1}}, "entry 0 of the block table is -1");
  refused({1, 10, {1}, {1, 2}}, "has 2 hashes for 1 block");
  refused({1, 20, {3, 3}}, "block 3 of PE 1 is named by sequence 1 and again by sequence 1");
  refused({0, 20, {5, 0}}, "block 0 of PE 0 is named by sequence 0 and again by sequence 1, without a hash that says");
}

TEST_F(SequencePlanTest, SharedBlocksHaveTheSameHash) {
  planning_.pes = 1;
  sequences_ = {{0, 20, {0, 1}, {5}}, {0, 20, {2, 0}, {4, 6}}};
  expect_refused("block 0 of PE 0 is named by sequence 0 and again by sequence 1");
  sequences_ = {{0, 20, {0, 1}, {5}}, {0, 20, {0, 1}, {5}}};
  expect_refused("block 1 of PE 0");
  sequences_ = {{0, 20, {0, 1}, {5}}, {0, 20, {2, 0}, {4, 5}}};
  EXPECT_THAT(plan().moves, IsEmpty());
}

TEST_F(SequencePlanTest, PairsSendWholeTablesToTheLowestFreeBlocks) {
  planning_.planner = Planner::kPair;
  sequences_ = {{0, 35, {9, 3, 5, 7, 20}, {1}}, {0, 90, range(40, 10)}, {1, 9, {1}, {1}}};
  planning_.pes = 2;
  const auto made = plan();
  EXPECT_THAT(made.moves,
              ElementsAre(Move{0, 9, 1, 0}, Move{0, 3, 1, 2}, Move{0, 5, 1, 3}, Move{0, 7, 1, 4}, Move{0, 20, 1, 5}));
  EXPECT_THAT(blocks_of(made, 0), ElementsAre(0, 2, 3, 4, 5));
}

TEST_F(SequencePlanTest, APairWhoseReceiverIsFullIsRefused) {
  planning_.planner = Planner::kPair;
  sequences_ = {{0, 35, range(0, 4)}, {0, 90, range(4, 9)}, {1, 9, range(0, 18)}};
  planning_.pes = 2;
  planning_.geometry.blocks = 20;
  expect_refused("PE 1 has 18 of its 20 blocks in use and no room for the 4 that PE 0 would send");
}

TEST_F(SequencePlanTest, APairWhoseSharedBlocksWouldBeClearedIsRefused) {
  planning_.planner = Planner::kPair;
  planning_.mode = Mode::kMove;
  sequences_ = {{0, 35, range(0, 4), {7}}, {0, 35, {0, 5, 6, 7}, {7}}, {1, 0, {}}};
  planning_.pes = 2;
  // Without this sequence, all 35 tokens would just reach the mean.
  sequences_.push_back({0, 10, {8}});
  expect_refused("sequence 0 of PE 0 would go, and its blocks be cleared");
}

}  // namespace
