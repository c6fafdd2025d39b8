// SPDX-License-Identifier: Apache-2.0
// Calls that cannot be: named on every PE that can see it, told to the partner, and nothing has moved.
#include <gmock/gmock.h>

#include <new>

#include "shmem/kv/shuffle.hpp"
#include "tests/unit/kv/played_pes.hpp"

namespace {

using kv_test::Blocks;
using kv_test::Call;
using kv_test::KvShuffle;
using kv_test::PlayedPes;
using testing::AllOf;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

using Change = std::function<void(int pe, Call&)>;

const std::vector<std::int64_t> kZeroSendsToOne{1, 0, 0, 1};
const std::vector<Blocks> kTwoBlocks{Blocks{{0, 1}, {2, 3}}, Blocks{}};

auto an_error(std::errc code, const std::string& text) {
  return AllOf(Field(&shmem::Error::code, code), Field(&shmem::Error::text, HasSubstr(text)));
}

class ShuffleErrors : public testing::Test {
 protected:
  /// After whatever happened the caches are as before, and a faultless call works.
  void expect_nothing_moved_and_works_again() {
    for (int pe = 0; pe < 2; ++pe) {
      EXPECT_TRUE(played_.caches(pe) == before_[static_cast<std::size_t>(pe)]);
    }
    EXPECT_THAT(played_.run(kZeroSendsToOne, kTwoBlocks), Each(Field(&shmem::Error::text, IsEmpty())));
    EXPECT_FALSE(played_.caches(1) == before_[1]);
    played_.fill(1);
  }

  /// PE `bad` has arguments of which the other knows nothing.
  void expect_failure_of_both(int bad, const Change& spoil, const std::string& text,
                              const std::vector<Blocks>& blocks = kTwoBlocks) {
    const auto errors = played_.run(kZeroSendsToOne, blocks, [&](int pe, Call& call) {
      if (pe == bad && spoil) {
        spoil(pe, call);
      }
    });
    EXPECT_THAT(errors[static_cast<std::size_t>(bad)], an_error(std::errc::invalid_argument, text));
    EXPECT_THAT(errors[static_cast<std::size_t>(1 - bad)],
                an_error(std::errc::connection_aborted, "PE " + std::to_string(bad) + " gave up: Invalid argument"));
    expect_nothing_moved_and_works_again();
  }

  /// All PEs see what is wrong with the pairs.
  void expect_bad_pairs(const std::vector<std::int64_t>& pairs, const std::string& text) {
    EXPECT_THAT(played_.run(pairs, kTwoBlocks), Each(an_error(std::errc::invalid_argument, text)));
    expect_nothing_moved_and_works_again();
  }

  PlayedPes played_{2, 4, {4, 2, 4, 16, 2}};
  std::vector<std::vector<std::byte>> before_{played_.caches(0), played_.caches(1)};
};

TEST_F(ShuffleErrors, TwoSendersInAPairAreRefused) {
  expect_bad_pairs({1, 0, 0, 0}, "row 0 {1, send} and row 1 {0, send} both send");
}

TEST_F(ShuffleErrors, PairsThatDoNotNameEachOtherAreRefused) {
  expect_bad_pairs({1, 0, 1, 1}, "row 0 {1, send} and row 1 {1, receive} do not name each other");
}

TEST_F(ShuffleErrors, APeerOutOfRangeIsRefused) {
  expect_bad_pairs({2, 0, 0, 1}, "row 0 {2, send} names a PE that is not in 0..1");
  expect_bad_pairs({1, 0, -1, 1}, "row");
}

TEST_F(ShuffleErrors, SendingToOneselfIsRefused) {
  expect_bad_pairs({0, 0, 1, 1}, "row 0 {0, send} sends to itself");
}

TEST_F(ShuffleErrors, AMessageNamesThePeAndTheCall) {
  EXPECT_THAT(played_.run({1, 0, 0, 0}, kTwoBlocks)[1].text, HasSubstr("kv_shuffle: PE 1, call 1: "));
  EXPECT_THAT(played_.run({1, 0, 0, 0}, kTwoBlocks)[0].text, HasSubstr("kv_shuffle: PE 0, call 2: "));
}

TEST_F(ShuffleErrors, ASourceBlockOutsideTheCacheIsNamedAndToldToTheReceiver) {
  expect_failure_of_both(0, {}, "src_block_table[1] is 4, not one of the cache's blocks 0..3", {{{0, 4}, {1, 2}}, {}});
  expect_failure_of_both(0, {}, "src_block_table[0] is -1", {{{-1}, {1}}, {}});
}

TEST_F(ShuffleErrors, ADestinationBlockOutsideTheCacheIsNamedAndToldToTheReceiver) {
  expect_failure_of_both(0, {}, "dst_block_table[0] is 4", {{{0}, {4}}, {}});
}

TEST_F(ShuffleErrors, ADestinationUsedTwiceIsNamed) {
  expect_failure_of_both(0, {}, "dst_block_table[2] is 3, which an earlier entry names too",
                         {{{0, 1, 2}, {3, 2, 3}}, {}});
}

TEST_F(ShuffleErrors, NullTablesOfASenderAreNamed) {
  expect_failure_of_both(
      0, [](int, Call& call) { call.source = nullptr; }, "src_block_table is NULL, but 2 blocks");
  expect_failure_of_both(
      0, [](int, Call& call) { call.destination = nullptr; }, "dst_block_table is NULL");
  expect_failure_of_both(
      0, [](int, Call& call) { call.block_count = -1; }, "block_count is -1");
}

TEST_F(ShuffleErrors, AReceiversBadCacheIsToldToTheSender) {
  std::vector<std::byte> elsewhere(played_.cache_bytes());
  expect_failure_of_both(
      1, [](int, Call& call) { call.k = nullptr; }, "k_cache is NULL");
  expect_failure_of_both(
      1, [](int, Call& call) { call.v = nullptr; }, "v_cache is NULL");
  expect_failure_of_both(
      1, [&](int, Call& call) { call.v = elsewhere.data(); }, "v_cache of 1024 bytes is not in symmetric");
  expect_failure_of_both(
      1, [](int, Call& call) { call.k = call.v + 64; }, "overlap");
}

TEST_F(ShuffleErrors, ACacheThatReachesOutOfSymmetricMemoryIsNamed) {
  expect_failure_of_both(
      0, [](int, Call& call) { call.shape.blocks = 1000; }, "is not in symmetric memory");
}

TEST_F(ShuffleErrors, ImpossibleShapesAreNamed) {
  expect_failure_of_both(
      1, [](int, Call& call) { call.shape.element_size = 3; }, "element size 3 is not 1, 2 or 4");
  expect_failure_of_both(
      1, [](int, Call& call) { call.shape.page = 0; }, "cannot be");
  expect_failure_of_both(
      1, [](int, Call& call) { call.shape.blocks = -4; }, "cannot be");
  expect_failure_of_both(
      1, [](int, Call& call) { call.shape.heads = call.shape.page = INT64_MAX / 2; }, "cannot be");
}

TEST_F(ShuffleErrors, AMissingPairTableIsNamed) {
  Call call = played_.call(0, kZeroSendsToOne, kTwoBlocks[0]);
  call.pair_table = nullptr;
  EXPECT_THAT(played_.run_one(0, call), an_error(std::errc::invalid_argument, "global_shuffle_table is NULL"));
}

TEST_F(ShuffleErrors, APartnerThatDoesNotComeIsNamedWhenTheTimeIsOver) {
  played_.time_limit = std::chrono::milliseconds{20};
  EXPECT_THAT(
      played_.run_one(0, played_.call(0, kZeroSendsToOne, kTwoBlocks[0])),
      an_error(std::errc::timed_out, "sending 2 blocks to PE 1: waited for PE 1 to be ready; it did not come in time"));
  // The receiver hears of it although it comes too late.
  EXPECT_THAT(played_.run_one(1, played_.call(1, kZeroSendsToOne, {})),
              an_error(std::errc::connection_aborted, "receiving from PE 0: PE 0 gave up"));
  played_.time_limit = std::chrono::minutes{1};
  expect_nothing_moved_and_works_again();
}

TEST_F(ShuffleErrors, APartnerWithMoreCallsIsNamed) {
  const std::vector<std::int64_t> idle{0, 1, 1, 1};
  EXPECT_EQ(played_.run_one(1, played_.call(1, idle, {})).text, "");
  played_.time_limit = std::chrono::milliseconds{500};
  const auto errors = played_.run(kZeroSendsToOne, kTwoBlocks);
  EXPECT_THAT(errors[0], an_error(std::errc::protocol_error, "PE 1 has gone on to a later call"));
}

TEST(ShuffleCores, AnOddNumberIsRefused) {
  for (const int cores : {-2, 0, 1, 3, 15}) {
    const auto made = KvShuffle::create({}, cores, nullptr);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), an_error(std::errc::invalid_argument, "cannot use " + std::to_string(cores) + " cores"));
  }
}

}  // namespace
