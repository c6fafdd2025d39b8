// SPDX-License-Identifier: Apache-2.0
// Invalid calls: every PE that can see the error reports it, the partner is informed, and no block has moved.
#include <new>

#include "tests/unit/kv/shuffles.hpp"

namespace {

using namespace kv_test;  // NOLINT(google-build-using-namespace): what the test is about

const std::vector<Blocks> kTwoBlocks{Blocks{{0, 1}, {2, 3}}, Blocks{}};

constexpr Shape kShape{Format::kApart, 1, 4, 2, 4, 16, 2};

class PairErrors : public testing::Test {
 protected:
  /// The caches are unchanged, and a valid call works.
  void expect_nothing_moved_and_works_again() {
    for (int pe = 0; pe < 2; ++pe) {
      EXPECT_TRUE(played_.caches(pe) == before_[static_cast<std::size_t>(pe)]);
    }
    EXPECT_THAT(played_.run(kZeroSendsToOne, kTwoBlocks), kNoErrors);
    EXPECT_FALSE(played_.caches(1) == before_[1]);
    played_.fill(1);
  }

  /// Only PE `bad` has invalid arguments; the other PE cannot see them.
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

  /// All PEs see that the pairs are invalid.
  void expect_bad_pairs(const std::vector<std::int64_t>& pairs, const std::string& text) {
    EXPECT_THAT(played_.run(pairs, kTwoBlocks), Each(an_error(std::errc::invalid_argument, text)));
    expect_nothing_moved_and_works_again();
  }

  shmem::Error run_alone(int pe, const std::vector<std::int64_t>& pairs, const Blocks& blocks) {
    const auto table = played_.table(pe, pairs, blocks);
    return played_.run_one(pe, {played_.cache(pe), nullptr, &table});
  }

  PlayedPes played_{2, OperatorSettings{.cores = 4}, kShape};
  std::vector<std::vector<std::byte>> before_{played_.caches(0), played_.caches(1)};
};

TEST_F(PairErrors, TwoSendersInAPairAreRefused) {
  expect_bad_pairs({1, 0, 0, 0}, "row 0 {1, send} and row 1 {0, send} both send");
}

TEST_F(PairErrors, PairsThatDoNotNameEachOtherAreRefused) {
  expect_bad_pairs({1, 0, 1, 1}, "row 0 {1, send} and row 1 {1, receive} do not name each other");
}

TEST_F(PairErrors, APeerOutOfRangeIsRefused) {
  expect_bad_pairs({2, 0, 0, 1}, "row 0 {2, send} names a PE that is not in 0..1");
  expect_bad_pairs({1, 0, -1, 1}, "row");
}

TEST_F(PairErrors, SendingToItselfIsRefused) {
  expect_bad_pairs({0, 0, 1, 1}, "row 0 {0, send} sends to itself");
}

TEST_F(PairErrors, TheErrorNamesThePeAndTheCall) {
  EXPECT_THAT(played_.run({1, 0, 0, 0}, kTwoBlocks)[1].text, HasSubstr("kv_shuffle: PE 1, call 1 by pairs: "));
  EXPECT_THAT(played_.run({1, 0, 0, 0}, kTwoBlocks)[0].text, HasSubstr("kv_shuffle: PE 0, call 2 by pairs: "));
}

TEST_F(PairErrors, ASourceBlockOutsideTheCacheIsNamedAndTheReceiverInformed) {
  expect_failure_of_both(
      0, {}, "the move of block 4 of PE 0 to block 2 of PE 1: there are PEs 0..1, and in their caches blocks 0..3",
      {{{0, 4}, {1, 2}}, {}});
  expect_failure_of_both(0, {}, "src_block_table[0] is -1", {{{-1}, {1}}, {}});
}

TEST_F(PairErrors, ADestinationBlockOutsideTheCacheIsNamedAndTheReceiverInformed) {
  expect_failure_of_both(0, {}, "the move of block 0 of PE 0 to block 4 of PE 1", {{{0}, {4}}, {}});
}

TEST_F(PairErrors, ADestinationUsedTwiceIsNamed) {
  expect_failure_of_both(0, {}, "block 3 of PE 1 is the destination of two different blocks",
                         {{{0, 1, 2}, {3, 2, 3}}, {}});
}

TEST_F(PairErrors, DifferentTablesOrCachesOfAPairAreReportedOnBoth) {
  const auto expect_difference = [&](const Change& change) {
    EXPECT_THAT(played_.run(kZeroSendsToOne, kTwoBlocks, change),
                Each(an_error(std::errc::invalid_argument, "the two have different pair tables or caches")));
    expect_nothing_moved_and_works_again();
  };
  expect_difference([](int pe, Call& call) { call.cache.shape.element_size = pe + 1; });
  expect_difference([](int pe, Call& call) { call.cache.shape.blocks -= pe; });
  expect_difference([](int pe, Call& call) {
    if (pe == 1) {
      std::swap(call.cache.place.k, call.cache.place.v);
    }
  });
  const auto other = played_.table(1, {1, 0, 0, 2}, {});
  expect_difference([&other](int pe, Call& call) { call.table = pe == 1 ? &other : call.table; });
}

TEST_F(PairErrors, ThePlanOfAnotherPeOrTeamIsRefused) {
  const auto of_one = played_.table(1, kZeroSendsToOne, {});
  EXPECT_THAT(played_.run_one(0, {played_.cache(0), nullptr, &of_one}),
              an_error(std::errc::invalid_argument, "the plan is PE 1's of 2 PEs, but this is PE 0 of 2"));
  const auto alone = *PairPlan::create(std::vector<std::int64_t>{0, 1}, 0, {}, {});
  EXPECT_THAT(played_.run_one(0, {played_.cache(0), nullptr, &alone}),
              an_error(std::errc::invalid_argument, "the plan is PE 0's of 1 PE"));
  EXPECT_FALSE(PairPlan::create(kZeroSendsToOne, 2, {}, {}));
  EXPECT_FALSE(PairPlan::create(kZeroSendsToOne, -1, {}, {}));
}

TEST_F(PairErrors, AReceiversInvalidCacheIsReportedToTheSender) {
  std::vector<std::byte> elsewhere(played_.buffer_bytes());
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.place.k = nullptr; }, "the cache's k is NULL");
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.place.v = nullptr; }, "the cache's v is NULL");
  expect_failure_of_both(
      1, [&](int, Call& call) { call.cache.place.v = elsewhere.data(); },
      "the cache's v of 1024 bytes is not in symmetric");
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.place.k = call.cache.place.v + 64; }, "overlap");
}

TEST_F(PairErrors, ACacheOutsideSymmetricMemoryIsNamed) {
  expect_failure_of_both(
      0, [](int, Call& call) { call.cache.shape.blocks = 1000; }, "is not in symmetric memory");
}

TEST_F(PairErrors, ImpossibleShapesAreNamed) {
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.shape.element_size = 3; }, "element size 3 is not 1, 2, 4 or 8");
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.shape.page = 0; }, "is invalid");
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.shape.blocks = -4; }, "is invalid");
  expect_failure_of_both(
      1, [](int, Call& call) { call.cache.shape.heads = call.cache.shape.page = INT64_MAX / 2; }, "is invalid");
}

TEST_F(PairErrors, APartnerThatDoesNotComeIsNamedAfterATimeout) {
  played_.time_limit = std::chrono::milliseconds{20};
  EXPECT_THAT(run_alone(0, kZeroSendsToOne, kTwoBlocks[0]),
              an_error(std::errc::timed_out,
                       "sending 2 blocks to PE 1: waited for PE 1 to be ready; it did not arrive in time"));
  // The receiver arrives too late and still learns that the sender gave up.
  EXPECT_THAT(run_alone(1, kZeroSendsToOne, {}),
              an_error(std::errc::connection_aborted, "receiving from PE 0: PE 0 gave up"));
  played_.time_limit = std::chrono::minutes{1};
  expect_nothing_moved_and_works_again();
}

TEST_F(PairErrors, TheReasonOfTheEndOfTheJobIsTold) {
  played_.why_ended = "PE 7 was killed";
  EXPECT_THAT(run_alone(0, kZeroSendsToOne, kTwoBlocks[0]),
              an_error(std::errc::operation_canceled, "to be ready; the job was ended: PE 7 was killed"));
  EXPECT_THAT(run_alone(1, kZeroSendsToOne, {}),
              an_error(std::errc::connection_aborted, "PE 0 gave up: the job was ended: PE 7 was killed"));
  played_.why_ended.clear();
  expect_nothing_moved_and_works_again();
}

TEST(PairErrorsOfCalls, APartnerWithMoreCallsIsNamed) {
  shmem::Error error{std::errc::timed_out, ""};
  for (int i = 0; i < 20 && error.code == std::errc::timed_out; ++i) {  // PE 1's thread may get no processor in time
    PlayedPes played{2, OperatorSettings{.cores = 4}, kShape};
    const auto idle = played.table(1, {0, 1, 1, 1}, {});
    EXPECT_EQ(played.run_one(1, {played.cache(1), nullptr, &idle}).text, "");
    played.time_limit = std::chrono::milliseconds{500};
    error = played.run(kZeroSendsToOne, kTwoBlocks)[0];
  }
  EXPECT_THAT(error, an_error(std::errc::protocol_error, "PE 1 has gone on to a later call"));
}

TEST(OperatorSettings, AreRefusedIfInvalid) {
  for (const int cores : {-2, 0, 1025}) {
    const auto made = shmem::kv::Operator::create({}, OperatorSettings{.cores = cores}, {}, nullptr);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error(), an_error(std::errc::invalid_argument, "cannot use " + std::to_string(cores) + " cores"));
  }
  EXPECT_FALSE(shmem::kv::Operator::create({}, OperatorSettings{.path = static_cast<shmem::kv::Path>(3)}, {}, nullptr));
}

}  // namespace
