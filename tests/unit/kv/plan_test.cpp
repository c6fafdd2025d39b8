// SPDX-License-Identifier: Apache-2.0
// Plans without a transfer: lists of moves, cache layouts, and the division of copies among cores.
#include "kv/operator/plan.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "kv/operator/copy_list.hpp"
#include "kv/operator/team_shuffle.hpp"

namespace {

using shmem::kv::CachePlace;
using shmem::kv::CopyList;
using shmem::kv::Format;
using shmem::kv::Layout;
using shmem::kv::Mode;
using shmem::kv::Move;
using shmem::kv::MovePlan;
using shmem::kv::Shape;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

MovePlan plan_of(const std::vector<Move>& moves, Mode mode = Mode::kCopy) {
  return *MovePlan::create(moves, mode);
}

std::string error_of(const std::vector<Move>& moves, Mode mode = Mode::kCopy) {
  const auto plan = MovePlan::create(moves, mode);
  return plan ? "" : plan.error().text;
}

TEST(MovePlan, HasEachMoveOnceInOrder) {
  const auto plan = plan_of({{1, 5, 0, 0}, {0, 2, 1, 7}, {0, 1, 1, 6}, {0, 2, 1, 7}, {1, 3, 1, 3}});
  EXPECT_THAT(plan.moves(), ElementsAre(Move{0, 1, 1, 6}, Move{0, 2, 1, 7}, Move{1, 5, 0, 0}));
}

TEST(MovePlan, CountsThePesThatSendOrReceive) {
  EXPECT_EQ(plan_of({}).pes(), 0);
  EXPECT_EQ(plan_of({{5, 1, 5, 2}}).pes(), 1);
  EXPECT_EQ(plan_of({{0, 1, 3, 1}, {0, 2, 4, 1}, {7, 1, 3, 2}, {3, 5, 0, 0}}).pes(), 4);
}

TEST(MovePlan, DigestDoesNotDependOnTheOrder) {
  std::vector<Move> moves;
  for (std::int64_t i = 0; i < 50; ++i) {
    moves.push_back({i % 3, i, 3, i});
  }
  const auto digest = plan_of(moves).digest();
  std::mt19937 random{1};
  std::shuffle(moves.begin(), moves.end(), random);
  moves.push_back(moves.front());
  EXPECT_EQ(plan_of(moves).digest(), digest);
  EXPECT_NE(plan_of(moves, Mode::kMove).digest(), digest);
  for (std::int64_t Move::*member : {&Move::src_pe, &Move::src_block, &Move::dst_pe, &Move::dst_block}) {
    auto other = moves;
    other.pop_back();
    other[7].*member += 1000;
    EXPECT_NE(plan_of(other).digest(), digest);
  }
  moves.pop_back();
  moves.pop_back();
  EXPECT_NE(plan_of(moves).digest(), digest);
}

TEST(MovePlan, NamesInvalidMoves) {
  EXPECT_EQ(error_of({{0, 1, 2, 3}, {1, 1, 2, 3}}), "block 3 of PE 2 is the destination of two different blocks");
  EXPECT_EQ(error_of({{0, -1, 2, 3}}), "the move of block -1 of PE 0 to block 3 of PE 2 has a negative number");
  EXPECT_THAT(error_of({{0, 1, -2, 3}}), HasSubstr("negative"));
  EXPECT_EQ(error_of({{0, 1, 2, 3}, {0, 1, 2, 4}}), "");
  EXPECT_EQ(error_of({{0, 1, 2, 3}, {0, 1, 2, 4}}, Mode::kMove), "block 1 of PE 0 is to be moved to two places");
}

TEST(MovePlan, RefusesPesAndBlocksThatDoNotExist) {
  const auto plan = plan_of({{0, 7, 3, 0}});
  EXPECT_TRUE(plan.check(4, 8));
  EXPECT_THAT(plan.check(3, 8).error().text, HasSubstr("to block 0 of PE 3: there are PEs 0..2"));
  EXPECT_THAT(plan.check(4, 7).error().text, HasSubstr("blocks 0..6"));
  EXPECT_FALSE(plan_of({{3, 0, 0, 0}}).check(3, 8));
  EXPECT_FALSE(plan_of({{0, 0, 0, 8}}).check(3, 8));
}

TEST(MovePlan, StagesBlocksWhoseDestinationIsASource) {
  // A chain from PE 0 through PE 1 to PE 2, a swap within PE 3, and a block that no other move names.
  const auto plan = plan_of({{0, 0, 1, 0}, {1, 0, 2, 0}, {3, 1, 3, 2}, {3, 2, 3, 1}, {0, 5, 2, 5}});
  EXPECT_THAT(plan.immediate(0), ElementsAre(Move{0, 5, 2, 5}));
  EXPECT_THAT(plan.staged(0), ElementsAre(Move{0, 0, 1, 0}));
  EXPECT_THAT(plan.immediate(1), ElementsAre(Move{1, 0, 2, 0}));
  EXPECT_THAT(plan.staged(1), IsEmpty());
  EXPECT_THAT(plan.staged(3), ElementsAre(Move{3, 1, 3, 2}, Move{3, 2, 3, 1}));
  EXPECT_EQ(plan.most_staged(), 2U);
  EXPECT_THAT(plan.immediate(2), IsEmpty());
}

TEST(MovePlan, ClearsBlocksThatWereMovedAndNotReplaced) {
  const std::vector<Move> moves{{0, 0, 1, 0}, {1, 0, 2, 0}, {0, 3, 0, 4}};
  EXPECT_THAT(plan_of(moves, Mode::kMove).cleared(0), ElementsAre(0, 3));
  EXPECT_THAT(plan_of(moves, Mode::kMove).cleared(1), IsEmpty());
  EXPECT_THAT(plan_of(moves).cleared(0), IsEmpty());
}

TEST(Layout, HasThePlanesAndChunksOfEachFormat) {
  const auto layout = [](Format format) {
    return *shmem::kv::layout_of({format, 3, 5, 2, 4, 8, 2});  // blocks of 128 bytes
  };
  const auto expect = [](const Layout& is, std::size_t planes, std::size_t chunk, std::size_t bytes) {
    EXPECT_EQ(is.blocks, 5U);
    EXPECT_EQ(is.planes, planes);
    EXPECT_EQ(is.chunk, chunk);
    EXPECT_EQ(is.buffer_bytes(), bytes);
  };
  expect(layout(Format::kApart), 6, 128, 3UL * 5 * 128);
  expect(layout(Format::kByLayer), 6, 128, 6UL * 5 * 128);
  expect(layout(Format::kInterleaved), 3, 256, 6UL * 5 * 128);
  expect(layout(Format::kByBlock), 1, 768, 6UL * 5 * 128);
  expect(layout(Format::kLatent), 3, 128, 3UL * 5 * 128);
}

TEST(Layout, PutsTheSecondHalfOfThePlanesIntoV) {
  const auto layout = *shmem::kv::layout_of({Format::kApart, 2, 3, 1, 1, 8, 4});
  std::vector<std::byte> k(layout.buffer_bytes());
  std::vector<std::byte> v(layout.buffer_bytes());
  const CachePlace place{k.data(), v.data()};
  EXPECT_EQ(layout.plane(place, 1), k.data() + 96);
  EXPECT_EQ(layout.plane(place, 2), v.data());
  EXPECT_EQ(layout.plane(place, 3), v.data() + 96);
}

TEST(Layout, NamesInvalidShapes) {
  const auto error_of_shape = [](const Shape& shape) {
    const auto layout = shmem::kv::layout_of(shape);
    return layout ? "" : layout.error().text;
  };
  EXPECT_EQ(error_of_shape({Format::kApart, 1, 1, 1, 1, 1, 8}), "");
  EXPECT_EQ(error_of_shape({Format::kApart, 1, 1, 1, 1, 1, 16}), "element size 16 is not 1, 2, 4 or 8");
  EXPECT_THAT(error_of_shape({static_cast<Format>(5), 1, 1, 1, 1, 1, 1}), HasSubstr("format 5 is invalid"));
  EXPECT_THAT(error_of_shape({static_cast<Format>(-1), 1, 1, 1, 1, 1, 1}), HasSubstr("format -1 is invalid"));
  EXPECT_THAT(error_of_shape({Format::kApart, 0, 1, 1, 1, 1, 1}), HasSubstr("0 layers of 1 block of 1 head"));
  EXPECT_THAT(error_of_shape({Format::kApart, 1, INT64_MAX / 2, 2, 1, 1, 1}), HasSubstr("fits into memory"));
  EXPECT_THAT(error_of_shape({Format::kApart, 1, INT64_MAX / 2, INT64_MAX / 2, 1, 1, 1}), HasSubstr("is invalid"));
}

TEST(StagingPasses, CoverABlockOnceAndFitIntoTheRoom) {
  for (const Format format : {Format::kApart, Format::kByBlock}) {
    const auto layout = *shmem::kv::layout_of({format, 4, 5, 3, 5, 7, 2});
    for (const std::size_t room : {1U, 64U, 1000U, 10'000U, 1'000'000U}) {
      std::vector<int> covered(layout.planes * layout.chunk);
      const auto passes = shmem::kv::staging_passes(layout, 3, room);
      for (const auto& pass : passes) {
        EXPECT_LE(pass.bytes(), std::max<std::size_t>(room / 3, 64));
        EXPECT_LE(pass.bytes(), passes.front().bytes());
        for (std::size_t plane = pass.first_plane; plane < pass.first_plane + pass.planes; ++plane) {
          for (std::size_t byte = pass.offset; byte < pass.offset + pass.size; ++byte) {
            ++covered.at(plane * layout.chunk + byte);
          }
        }
      }
      EXPECT_THAT(covered, testing::Each(1)) << room;
    }
    EXPECT_THAT(shmem::kv::staging_passes(layout, 0, 1000), IsEmpty());
  }
}

struct Piece {
  std::byte* to;
  const std::byte* from;
  std::size_t size;
};

std::vector<Piece> pieces_of(const CopyList& list, int index, int count) {
  std::vector<Piece> pieces;
  list.share(index, count, [&](std::byte* to, const std::byte* from, std::size_t size) {
    pieces.push_back({to, from, size});
  });
  return pieces;
}

TEST(CopyList, JoinsRangesThatAreAdjacentOnBothSides) {
  std::vector<std::byte> memory(1000);
  std::byte* const at = memory.data();
  CopyList list;
  list.add(at + 500, at, 10);
  list.add(at + 510, at + 10, 20);
  list.add(at + 600, at + 30, 5);  // only the source continues
  list.add(at + 605, at + 40, 5);  // only the destination continues
  const auto pieces = pieces_of(list, 0, 1);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].size, 30U);
  EXPECT_EQ(list.bytes(), 40U);
}

TEST(CopyList, SharesCoverEveryByteOnceForAnyNumberOfCores) {
  const auto layout = *shmem::kv::layout_of({Format::kApart, 2, 9, 1, 7, 11, 1});
  std::vector<std::byte> from(2 * layout.buffer_bytes());
  std::vector<std::byte> to(from.size());
  const CachePlace place{from.data(), from.data() + layout.buffer_bytes()};
  CopyList list{layout, place};
  for (const std::size_t block : {0U, 1U, 4U, 8U}) {
    list.add(to.data() + block * layout.chunk, from.data() + block * layout.chunk, layout.chunk);
  }
  EXPECT_EQ(list.bytes(), 4UL * 4 * layout.chunk);
  for (const int cores : {1, 2, 3, 7, 16, 40}) {
    std::vector<int> covered(from.size());
    for (int core = 0; core < cores; ++core) {
      std::size_t bytes = 0;
      for (const Piece& piece : pieces_of(list, core, cores)) {
        EXPECT_EQ(piece.to - to.data(), piece.from - from.data());
        std::for_each_n(covered.begin() + (piece.from - from.data()), piece.size, [](int& count) { ++count; });
        bytes += piece.size;
      }
      EXPECT_LE(bytes, list.bytes() / static_cast<std::size_t>(cores) + 2UL * 64);
    }
    for (std::size_t i = 0; i < covered.size(); ++i) {
      const std::size_t block = i / layout.chunk % layout.blocks;
      EXPECT_EQ(covered[i], block == 0 || block == 1 || block == 4 || block == 8) << "byte " << i;
    }
  }
}

TEST(CopyList, MayBeEmpty) {
  EXPECT_THAT(pieces_of(CopyList{}, 1, 3), IsEmpty());
  EXPECT_EQ(CopyList{}.bytes(), 0U);
}

}  // namespace
