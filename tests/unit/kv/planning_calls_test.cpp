// SPDX-License-Identifier: Apache-2.0
// shmemx_kv_plan_balance and shmemx_kv_plan_placement.
#include <gmock/gmock.h>
#include <shmemx.h>

#include <array>
#include <cerrno>
#include <memory>

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using PlanPtr = std::unique_ptr<shmemx_kv_plan_t, decltype(&shmemx_kv_plan_destroy)>;

/// Blocks of 10 tokens. PE 0 has two sequences, of three and two blocks; PE 1 has one of one block.
class PlanningCalls : public testing::Test {
 protected:
  int plan() {
    shmemx_kv_plan_t* made = nullptr;
    const int result = shmemx_kv_plan_balance(sequences_.data(), sequences_.size(), &planning_, &made);
    plan_.reset(made);
    EXPECT_EQ(made == nullptr, result != 0);
    return result;
  }

  void expect_refused(const std::string& reason, int error = -EINVAL) {
    EXPECT_EQ(plan(), error);
    EXPECT_THAT(shmemx_error_text(), AllOf(HasSubstr("shmemx_kv_plan_balance: "), HasSubstr(reason)));
  }

  std::vector<std::array<std::int64_t, 4>> moves() const {
    const shmemx_kv_move_t* first = nullptr;
    std::size_t count = 0;
    EXPECT_EQ(shmemx_kv_plan_moves(plan_.get(), &first, &count), 0);
    std::vector<std::array<std::int64_t, 4>> result;
    for (std::size_t i = 0; i < count; ++i) {
      result.push_back({first[i].src_pe, first[i].src_block, first[i].dst_pe, first[i].dst_block});
    }
    return result;
  }

  std::vector<std::int64_t> placement(std::size_t index, std::int64_t pe) const {
    shmemx_kv_placement_t placement{};
    EXPECT_EQ(shmemx_kv_plan_placement(plan_.get(), index, &placement), 0);
    EXPECT_EQ(placement.pe, pe);
    return {placement.blocks, placement.blocks + placement.block_count};
  }

  const std::vector<std::int64_t> long_table_{4, 2, 7};
  const std::vector<std::int64_t> short_table_{0, 1};
  const std::vector<std::uint64_t> hashes_{5};
  shmemx_kv_planning_t planning_{SHMEMX_KV_BALANCED, SHMEMX_KV_COPY, 2, 0, 8, 10, 0};
  std::vector<shmemx_kv_sequence_t> sequences_{{0, 30, long_table_.data(), 3, nullptr, 0},
                                               {0, 15, short_table_.data(), 2, hashes_.data(), 1},
                                               {1, 10, short_table_.data(), 1, hashes_.data(), 1}};
  PlanPtr plan_{nullptr, shmemx_kv_plan_destroy};
};

TEST_F(PlanningCalls, BalancesAndReportsThePlacements) {
  ASSERT_EQ(plan(), 0) << shmemx_error_text();
  // PE 0 has 17.5 tokens more than the mean. PE 1 already has the first block of the sequence of 15.
  EXPECT_THAT(moves(), ElementsAre(std::array<std::int64_t, 4>{0, 1, 1, 1}));
  EXPECT_THAT(placement(0, 0), testing::ElementsAreArray(long_table_));
  EXPECT_THAT(placement(1, 1), ElementsAre(0, 1));
  EXPECT_THAT(placement(2, 1), ElementsAre(0));
}

TEST_F(PlanningCalls, PairsSendWholeTables) {
  planning_.planner = SHMEMX_KV_PAIR;
  planning_.mode = SHMEMX_KV_MOVE;
  ASSERT_EQ(plan(), 0) << shmemx_error_text();
  EXPECT_THAT(moves(), ElementsAre(std::array<std::int64_t, 4>{0, 0, 1, 1}, std::array<std::int64_t, 4>{0, 1, 1, 2}));
  EXPECT_THAT(placement(1, 1), ElementsAre(1, 2));
}

TEST_F(PlanningCalls, TheSameArgumentsMakeTheSamePlan) {
  ASSERT_EQ(plan(), 0);
  const std::uint64_t digest = shmemx_kv_plan_digest(plan_.get());
  const auto copy = sequences_;
  sequences_ = copy;
  ASSERT_EQ(plan(), 0);
  EXPECT_EQ(shmemx_kv_plan_digest(plan_.get()), digest);
  planning_.mode = SHMEMX_KV_MOVE;
  ASSERT_EQ(plan(), 0);
  EXPECT_NE(shmemx_kv_plan_digest(plan_.get()), digest);
}

TEST_F(PlanningCalls, RefuseInvalidArguments) {
  planning_.planner = 2;
  expect_refused("planner 2 is neither");
  planning_.planner = SHMEMX_KV_PAIR;
  planning_.mode = -1;
  expect_refused("mode -1 is neither");
  planning_.mode = 0;
  planning_.reserved = 1;
  expect_refused("reserved is 1, not 0");
  planning_.reserved = 0;
  planning_.n_pes = 0;
  expect_refused("cannot plan: 0 PEs");
  planning_.n_pes = 1;
  expect_refused("sequence 2 is of PE 1, which is not in 0..0");
  planning_.n_pes = 2;
  planning_.blocks = 7;
  expect_refused("entry 2 of the block table is 7, not one of the cache's blocks 0..6");
}

TEST_F(PlanningCalls, RefuseInvalidSequences) {
  sequences_[1].hash_count = -1;
  expect_refused("sequence 1 has 2 blocks and -1 hashes");
  sequences_[1].hash_count = 1;
  sequences_[1].hashes = nullptr;
  expect_refused("sequence 1: hashes is NULL");
  sequences_[1].hash_count = 0;
  sequences_[2].blocks = nullptr;
  expect_refused("sequence 2: blocks is NULL");
  sequences_.pop_back();
  // The partner has one free block of 8.
  const std::vector<std::int64_t> many{0, 1, 2, 3, 4, 5, 6};
  sequences_.push_back({1, 10, many.data(), 7, nullptr, 0});
  planning_.planner = SHMEMX_KV_PAIR;
  expect_refused("PE 1 has 7 of its 8 blocks in use and no room for the 2 that PE 0 would send", -ENOBUFS);
  sequences_.clear();
  expect_refused("there are no sequences");
}

TEST_F(PlanningCalls, RefuseNull) {
  shmemx_kv_plan_t* made = nullptr;
  EXPECT_EQ(shmemx_kv_plan_balance(nullptr, 1, &planning_, &made), -EINVAL);
  EXPECT_EQ(shmemx_kv_plan_balance(sequences_.data(), 1, nullptr, &made), -EINVAL);
  EXPECT_EQ(shmemx_kv_plan_balance(sequences_.data(), 1, &planning_, nullptr), -EINVAL);
  shmemx_kv_placement_t placement{};
  EXPECT_EQ(shmemx_kv_plan_placement(nullptr, 0, &placement), -EINVAL);
  ASSERT_EQ(plan(), 0);
  EXPECT_EQ(shmemx_kv_plan_placement(plan_.get(), 0, nullptr), -EINVAL);
  EXPECT_EQ(shmemx_kv_plan_placement(plan_.get(), 3, &placement), -EINVAL);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("sequence 3 is not one of the 3 that the plan was made for"));
  const shmemx_kv_move_t move{0, 0, 1, 0};
  ASSERT_EQ(shmemx_kv_plan_create(&move, 1, SHMEMX_KV_COPY, &made), 0);
  EXPECT_EQ(shmemx_kv_plan_placement(made, 0, &placement), -EINVAL);
  shmemx_kv_plan_destroy(made);
}

}  // namespace
