// SPDX-License-Identifier: Apache-2.0
// Shuffles of caches that some PEs have as private memory, which only copies of the kernel reach. Also the errors after
// a copy that failed.
#include <chrono>
#include <thread>
#include <utility>

#include "tests/unit/kv/shuffles.hpp"

namespace {

using namespace kv_test;  // NOLINT(google-build-using-namespace): what the test is about

/// Each of three PEs gives its block 0 to the next one, so that all blocks are staged.
const std::vector<Move> kCycle{{0, 0, 1, 0}, {1, 0, 2, 0}, {2, 0, 0, 0}};

TEST(PrivateShuffle, CopiesManyPiecesAtOnceAndOnlyIntoPrivateMemory) {
  for (const auto& [format, number] : kPieces) {
    PlayedPes played{3, OperatorSettings{}, layered(format)};
    played.private_caches.pes = {0, 1};
    // Two stretches to PE 1; the blocks for PE 2 and within PE 0 are copied by stores.
    ASSERT_THAT(played.run(copies({{0, 1, 1, 9}, {0, 2, 1, 10}, {0, 5, 1, 7}, {0, 3, 2, 4}, {0, 4, 0, 12}})),
                kNoErrors);
    EXPECT_EQ(played.private_caches.calls, 1U);
    EXPECT_EQ(played.private_caches.pieces, 2 * number) << static_cast<int>(format);
    ASSERT_THAT(played.run({1, 0, 0, 1, 2, 1}, {Blocks{{1, 2, 3}, {9, 10, 11}}, Blocks{}, Blocks{}}), kNoErrors);
    EXPECT_EQ(played.private_caches.calls, 2U) << "by pairs";
    ASSERT_THAT(played.run({2, 0, 1, 1, 0, 1}, {Blocks{{1, 2, 3}, {9, 10, 11}}, Blocks{}, Blocks{}}), kNoErrors);
    EXPECT_EQ(played.private_caches.calls, 2U) << "the receiver's memory is mapped";
    EXPECT_EQ(played.traffic.puts, 0U);
  }
}

TEST(PrivateShuffle, TakesTheSyncsOfMappedMemory) {
  PlayedPes played{3, OperatorSettings{}, layered(Format::kByLayer)};
  played.private_caches.pes = {1};
  ASSERT_THAT(played.run(copies({{0, 0, 1, 1}})), kNoErrors);
  EXPECT_EQ(played.syncs(), 2U);
  ASSERT_THAT(played.run(copies(kCycle)), kNoErrors);
  EXPECT_EQ(played.syncs(), 5U);
}

TEST(PrivateShuffle, APeDoesNotCopyWhatOthersSend) {
  PlayedPes played{2, OperatorSettings{}, layered(Format::kApart)};
  played.private_caches.pes = {0};  // PE 1 cannot read it
  const auto before = played.all_caches();
  bool agreed = false;
  played.after_sync = [&](int pe) {
    if (pe == 0 && !agreed) {
      agreed = true;
      wait_until_in_sync(played, 1);
      EXPECT_TRUE(played.all_caches() == before);
    }
  };
  EXPECT_THAT(played.run(copies({{0, 0, 1, 1}})), kNoErrors);
  EXPECT_FALSE(played.all_caches() == before);
}

TEST(PrivateShuffle, ReportsOnAllPesWhichOneCouldNotCopy) {
  for (const auto& moves : {std::vector<Move>{{1, 0, 2, 1}}, kCycle}) {
    PlayedPes played{3, OperatorSettings{}, layered(Format::kByLayer)};
    played.private_caches.pes = {2};
    played.private_caches.failure = [](int from, int to) {
      return from == 1 && to == 2 ? std::errc::permission_denied : std::errc{};
    };
    const auto errors = played.run(copies(moves));
    EXPECT_THAT(errors[1], an_error(std::errc::permission_denied, "kv_shuffle: PE 1, call 1: no copies to PE 2"));
    for (const std::size_t pe : {0U, 2U}) {
      EXPECT_THAT(errors[pe], an_error(std::errc::connection_aborted,
                                       "PE 1 could not send its blocks to PE 2: Permission denied (its own message "
                                       "says why)"));
    }
    played.private_caches.failure = {};
    EXPECT_THAT(played.run(copies(moves)),
                Each(Field(&shmem::Error::text, HasSubstr("call 2: an earlier call ended in the middle: "))));
  }
}

TEST(PrivateShuffle, TellsWhyAPeHasDiedIfTheJobWasEnded) {
  PlayedPes played{3, OperatorSettings{}, layered(Format::kByLayer)};
  played.private_caches.pes = {2};
  played.private_caches.failure = [](int /*from*/, int /*to*/) { return std::errc::owner_dead; };
  played.why_ended = "PE 7 was killed";
  EXPECT_THAT(played.run(copies({{1, 0, 2, 1}}))[0],
              an_error(std::errc::connection_aborted,
                       "to PE 2: its process has died; the job was ended: PE 7 was killed (its own message says why)"));
}

TEST(PrivateShuffle, NothingMoreIsCopiedAfterAFailure) {
  PlayedPes played{3, OperatorSettings{}, layered(Format::kByLayer)};
  played.private_caches.pes = {1, 2};
  const auto before = played.caches(2);
  played.private_caches.failure = [](int /*from*/, int to) { return to == 1 ? std::errc::bad_address : std::errc{}; };
  EXPECT_THAT(played.run(copies({{0, 0, 1, 1}, {0, 1, 2, 1}}))[2],
              an_error(std::errc::connection_aborted, "to PE 1: Bad address"));
  EXPECT_TRUE(played.caches(2) == before);
}

TEST(PrivateShuffle, NothingMoreIsCopiedToTheSamePeAfterAFailure) {
  constexpr std::int64_t kManyLayers = 100;  // so that the pieces of two blocks take two calls
  PlayedPes played{2, OperatorSettings{}, {Format::kByLayer, kManyLayers, 4, 1, 4, 16, 1}};
  played.private_caches.pes = {1};
  bool failed = false;  // in the first call only
  played.private_caches.failure = [&](int /*from*/, int /*to*/) {
    return std::exchange(failed, true) ? std::errc{} : std::errc::bad_address;
  };
  const auto errors = played.run(copies({{0, 0, 1, 1}, {0, 2, 1, 0}}));
  EXPECT_THAT(errors[0], an_error(std::errc::bad_address, "no copies to PE 1"));
  EXPECT_THAT(errors[1], an_error(std::errc::connection_aborted, "PE 0 could not send its blocks to PE 1"));
  EXPECT_EQ(played.private_caches.calls, 1U);
}

/// PE 0 comes out of a sync so late that PE 1 has failed in the meantime. It must not end its call before the others.
TEST(PrivateShuffle, AFailureIsReportedAtTheSameSyncOnAllPes) {
  PlayedPes played{3, OperatorSettings{}, layered(Format::kByLayer)};
  played.time_limit = std::chrono::seconds{20};
  played.private_caches.pes = {2};
  played.private_caches.failure = [](int /*from*/, int /*to*/) { return std::errc::permission_denied; };
  int syncs = 0;
  played.after_sync = [&](int pe) {
    if (pe == 0 && ++syncs == 2) {
      wait_until_in_sync(played, 2, std::chrono::seconds{10});
    }
  };
  const auto errors = played.run(copies(kCycle));
  EXPECT_THAT(errors[0], an_error(std::errc::connection_aborted, "PE 1 could not send its blocks to PE 2"));
  EXPECT_THAT(errors[1], an_error(std::errc::permission_denied, "no copies to PE 2"));
  EXPECT_THAT(errors[2], an_error(std::errc::connection_aborted, "PE 1 could not send its blocks to PE 2"));
  EXPECT_EQ(syncs, 3);
}

TEST(PrivateShuffle, ReportsAFailedCopyToThePartner) {
  PlayedPes played{2, OperatorSettings{.cores = 3}, layered(Format::kApart)};
  played.private_caches.pes = {1};
  const std::vector<Blocks> blocks{Blocks{{1, 3}, {9, 13}}, Blocks{}};
  played.private_caches.failure = [](int /*from*/, int /*to*/) { return std::errc::permission_denied; };
  const auto errors = played.run(kZeroSendsToOne, blocks);
  EXPECT_THAT(errors[0], an_error(std::errc::permission_denied, "sending 2 blocks to PE 1: no copies to PE 1"));
  EXPECT_THAT(errors[1], an_error(std::errc::connection_aborted,
                                  "receiving from PE 0: PE 0 gave up: Permission denied (its own message says why)"));
  played.private_caches.failure = {};
  EXPECT_THAT(played.run(kZeroSendsToOne, blocks), kNoErrors);
}

TEST(PrivateShuffle, ReportsAFailedCopyToOtherNodes) {
  PlayedPes played{4, OperatorSettings{}, layered(Format::kByLayer), 2};
  played.private_caches.pes = {1};
  played.private_caches.failure = [](int /*from*/, int /*to*/) { return std::errc::permission_denied; };
  const auto errors = played.run(copies({{0, 0, 1, 1}, {0, 0, 3, 1}}));
  EXPECT_THAT(errors[0], an_error(std::errc::permission_denied, "no copies to PE 1"));
  for (const std::size_t pe : {1U, 2U, 3U}) {
    EXPECT_THAT(errors[pe],
                an_error(std::errc::connection_aborted, "PE 0 could not send its blocks (its own message says why)"));
  }
}

}  // namespace
