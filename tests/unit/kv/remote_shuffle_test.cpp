// SPDX-License-Identifier: Apache-2.0
// The puts of a shuffle to PEs on other nodes: few large pieces, many at once, and no notification before they have
// arrived. Also the errors after a lost put.
#include "tests/unit/kv/shuffles.hpp"

namespace {

using namespace kv_test;  // NOLINT(google-build-using-namespace): what the test is about

using Loss = kv_test::PlayedTraffic::Loss;

TEST(RemoteShuffle, SendsConsecutiveBlocksInOnePiece) {
  for (const auto& [format, number] : kPieces) {
    PlayedPes played{2, OperatorSettings{}, layered(format), 1};
    ASSERT_THAT(played.run(copies({{0, 1, 1, 9}, {0, 3, 1, 11}, {0, 2, 1, 10}})), kNoErrors);
    EXPECT_EQ(played.traffic.puts, number) << static_cast<int>(format);
    if (format != Format::kApart) {
      continue;
    }
    ASSERT_THAT(played.run(kZeroSendsToOne, {Blocks{{1, 2, 3}, {9, 10, 11}}, Blocks{}}), kNoErrors);
    EXPECT_EQ(played.traffic.puts, 2 * number) << "by pairs";
  }
}

// PlayedPes has them adjacent. An application may have registered them one by one.
TEST(RemoteShuffle, SendsKAndVApart) {
  std::vector<Move> moves;
  for (std::int64_t block = 0; block < 16; ++block) {
    moves.push_back({0, block, 1, block});
  }
  PlayedPes played{2, OperatorSettings{}, layered(Format::kApart), 1};
  ASSERT_THAT(played.run(copies(moves)), kNoErrors);
  EXPECT_EQ(played.traffic.puts, 2U);
  const std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  ASSERT_THAT(played.run(kZeroSendsToOne, {Blocks{all, all}, Blocks{}}), kNoErrors);
  EXPECT_EQ(played.traffic.puts, 4U) << "by pairs";
}

TEST(RemoteShuffle, SendsConsecutiveStagedBlocksInOnePiece) {
  PlayedPes played{2, OperatorSettings{}, layered(Format::kByBlock), 1};
  ASSERT_THAT(played.run(copies({{0, 1, 1, 1}, {0, 2, 1, 2}, {0, 3, 1, 3}, {1, 1, 0, 1}, {1, 2, 0, 2}, {1, 3, 0, 3}})),
              kNoErrors);
  EXPECT_EQ(played.traffic.puts, 2U);
}

TEST(RemoteShuffle, SendsAllPiecesAtOnceAndNotifiesAfterTheyHaveArrived) {
  PlayedPes played{3, OperatorSettings{}, layered(Format::kApart), 1};
  const auto scattered = copies({{0, 1, 1, 9}, {0, 3, 1, 13}, {0, 5, 1, 11}, {0, 7, 2, 9}});
  ASSERT_THAT(played.run(scattered), kNoErrors);
  EXPECT_EQ(played.traffic.most_at_once, 4L * 2 * kLayers);
  ASSERT_THAT(played.run({1, 0, 0, 1, 2, 1}, {Blocks{{1, 3, 5, 7, 9}, {9, 13, 11, 15, 0}}, Blocks{}, Blocks{}}),
              kNoErrors);
  EXPECT_EQ(played.traffic.most_at_once, 5L * 2 * kLayers);
  EXPECT_FALSE(played.traffic.told_early);
}

TEST(RemoteShuffle, ReportsOnAllPesWhichOneCouldNotSend) {
  for (const Loss loss : {Loss::kAtPut, Loss::kAtQuiet}) {
    // A single block is sent directly; the blocks of a cycle are all staged.
    for (const auto& moves : {std::vector<Move>{{1, 0, 2, 1}}, {{1, 0, 2, 0}, {2, 0, 0, 0}, {0, 0, 1, 0}}}) {
      PlayedPes played{4, OperatorSettings{}, layered(Format::kByLayer), 2};
      played.traffic.loss = [loss](int from, int to) { return from == 1 && to == 2 ? loss : Loss::kNone; };
      const auto errors = played.run(copies(moves));
      EXPECT_THAT(errors[1], an_error(std::errc::connection_reset, "kv_shuffle: PE 1, call 1: PE 2 is lost"));
      for (const std::size_t pe : {0U, 2U, 3U}) {
        EXPECT_THAT(errors[pe], an_error(std::errc::connection_aborted,
                                         "PE 1 could not send its blocks (its own message says why)"));
      }
      played.traffic.loss = {};
      EXPECT_THAT(played.run(copies(moves)),
                  Each(Field(&shmem::Error::text, HasSubstr("call 2: an earlier call ended in the middle: PE "))));
    }
  }
}

TEST(RemoteShuffle, ReportsAFailedPutToThePartner) {
  for (const Loss loss : {Loss::kAtPut, Loss::kAtQuiet}) {
    PlayedPes played{2, OperatorSettings{.cores = 3}, layered(Format::kApart), 1};
    const std::vector<Blocks> blocks{Blocks{{1, 3}, {9, 13}}, Blocks{}};
    played.traffic.loss = [loss](int /*from*/, int /*to*/) { return loss; };
    const auto errors = played.run(kZeroSendsToOne, blocks);
    EXPECT_THAT(errors[0], an_error(std::errc::connection_reset, "sending 2 blocks to PE 1: PE 1 is lost"));
    EXPECT_THAT(errors[1], an_error(std::errc::connection_aborted, "receiving from PE 0: PE 0 gave up: "));
    played.traffic.loss = {};
    EXPECT_THAT(played.run(kZeroSendsToOne, blocks), kNoErrors) << "words still arrive";
  }
}

TEST(RemoteShuffle, NamesAnotherPlanOfAPeOnAnotherNode) {
  PlayedPes played{4, OperatorSettings{}, layered(Format::kByLayer), 2};
  const auto other = copies({{0, 0, 1, 2}});
  const auto before = played.all_caches();
  EXPECT_THAT(played.run(copies({{0, 0, 3, 1}}),
                         [&](int pe, PlayedPes::Call& call) { call.list = pe == 2 ? &other : call.list; }),
              Each(an_error(std::errc::invalid_argument, "PE 2 has another plan than PE 0; nothing has moved")));
  EXPECT_TRUE(played.all_caches() == before);
  EXPECT_THAT(played.run(copies({{0, 0, 3, 1}})), kNoErrors);
}

}  // namespace
