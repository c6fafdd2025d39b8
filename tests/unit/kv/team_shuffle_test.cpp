// SPDX-License-Identifier: Apache-2.0
// Lists of moves carried out by threads that simulate PEs, compared with a model that first copies all blocks and then
// writes them to their destinations.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "tests/support/sanitized.hpp"
#include "tests/unit/kv/shuffles.hpp"

namespace {

using namespace kv_test;  // NOLINT(google-build-using-namespace): what the test is about

/// The index of byte `byte` of the K (or V) part of a block in the result of PlayedPes::caches.
std::size_t place_of(const Shape& s, std::size_t v_begin, std::int64_t layer, bool v, std::int64_t block,
                     std::int64_t byte) {
  const std::int64_t part = s.heads * s.page * s.head_dim * s.element_size;
  const auto at = [&](std::int64_t index) { return static_cast<std::size_t>(index * part + byte); };
  switch (s.format) {
    case Format::kApart:
      return (v ? v_begin : 0) + at(layer * s.blocks + block);
    case Format::kByLayer:
      return at((2 * layer + (v ? 1 : 0)) * s.blocks + block);
    case Format::kInterleaved:
      return at(2 * (layer * s.blocks + block) + (v ? 1 : 0));
    case Format::kByBlock:
      return at(2 * (block * s.layers + layer) + (v ? 1 : 0));
    case Format::kLatent:
      return at(layer * s.blocks + block);
  }
  return 0;
}

/// The indices of all bytes of a block, in the same order for all blocks.
std::vector<std::size_t> places_of(const Shape& s, std::size_t v_begin, std::int64_t block) {
  std::vector<std::size_t> places;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    for (int v = 0; v < (s.format == Format::kLatent ? 1 : 2); ++v) {
      for (std::int64_t byte = 0; byte < s.heads * s.page * s.head_dim * s.element_size; ++byte) {
        places.push_back(place_of(s, v_begin, layer, v == 1, block, byte));
      }
    }
  }
  return places;
}

Caches after(const Caches& before, const Shape& shape, std::size_t v_begin, const std::vector<Move>& moves, Mode mode) {
  Caches caches = before;
  std::set<std::pair<std::int64_t, std::int64_t>> filled;
  for (const Move& move : moves) {
    const auto from = places_of(shape, v_begin, move.src_block);
    const auto to = places_of(shape, v_begin, move.dst_block);
    for (std::size_t i = 0; i < from.size(); ++i) {
      caches[static_cast<std::size_t>(move.dst_pe)][to[i]] = before[static_cast<std::size_t>(move.src_pe)][from[i]];
    }
    filled.insert({move.dst_pe, move.dst_block});
  }
  for (const Move& move : moves) {
    if (mode == Mode::kMove && filled.count({move.src_pe, move.src_block}) == 0) {
      for (const std::size_t place : places_of(shape, v_begin, move.src_block)) {
        caches[static_cast<std::size_t>(move.src_pe)][place] = std::byte{0};
      }
    }
  }
  return caches;
}

/// All destinations are different. In move mode all sources are, too, because they are cleared.
std::vector<Move> random_moves(int pes, std::int64_t blocks, Mode mode, std::mt19937& random) {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (int pe = 0; pe < pes; ++pe) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      all.emplace_back(pe, block);
    }
  }
  auto sources = all;
  std::shuffle(all.begin(), all.end(), random);
  std::shuffle(sources.begin(), sources.end(), random);
  std::vector<Move> moves;
  const std::size_t count = random() % (all.size() + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& from = sources[mode == Mode::kMove ? i : random() % sources.size()];
    moves.push_back({from.first, from.second, all[i].first, all[i].second});
    if (random() % 8 == 0) {
      moves.push_back(moves.back());
    }
  }
  std::shuffle(moves.begin(), moves.end(), random);
  return moves;
}

struct TeamCase {
  int pes;
  OperatorSettings settings;
  Shape shape;
  int pes_a_node = 0;
  std::set<int> private_pes{};  // whose caches are private memory
};

class TeamShuffleTest : public testing::TestWithParam<TeamCase> {};

TEST_P(TeamShuffleTest, DoesExactlyTheMovesAsIfAllAtOnce) {
  const auto& [pes, settings, shape, pes_a_node, private_pes] = GetParam();
  PlayedPes played{pes, settings, shape, pes_a_node};
  played.private_caches.pes = private_pes;
  std::mt19937 random{static_cast<unsigned>(pes * 100 + settings.cores)};
  for (int round = 0; round < (test_support::kSanitized ? 4 : 12); ++round) {
    const Mode mode = round % 3 == 0 ? Mode::kMove : Mode::kCopy;
    const auto moves = random_moves(pes, shape.blocks, mode, random);
    played.fill(static_cast<unsigned>(round));
    const auto expected = after(played.all_caches(), shape, played.buffer_bytes(), moves, mode);
    ASSERT_THAT(played.run(*MovePlan::create(moves, mode)), kNoErrors);
    ASSERT_TRUE(played.all_caches() == expected) << "round " << round;
    ASSERT_FALSE(played.traffic.told_early);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TeamShuffleTest,
    testing::Values(TeamCase{2, {1, Path::kAuto, 1 << 20}, {Format::kApart, 1, 5, 2, 4, 16, 1}},
                    TeamCase{3, {2, Path::kAuto, 1}, {Format::kByLayer, 3, 4, 3, 5, 7, 2}},
                    TeamCase{4, {3, Path::kScratch, 1000}, {Format::kInterleaved, 2, 6, 1, 8, 33, 4}},
                    TeamCase{3, {2, Path::kDirect, 4096}, {Format::kByBlock, 4, 5, 2, 3, 5, 8}},
                    TeamCase{5, {2, Path::kAuto, 300}, {Format::kLatent, 3, 7, 1, 16, 9, 2}},
                    TeamCase{1, {2, Path::kAuto, 100}, {Format::kApart, 2, 9, 1, 3, 3, 1}},
                    TeamCase{2, {2, Path::kScratch, 100'000}, {Format::kApart, 1, 4, 8, 64, 130, 1}}));

INSTANTIATE_TEST_SUITE_P(
    Nodes, TeamShuffleTest,
    testing::Values(TeamCase{2, {1, Path::kAuto, 1 << 20}, {Format::kApart, 2, 5, 2, 4, 16, 1}, 1},
                    TeamCase{3, {2, Path::kAuto, 1}, {Format::kByLayer, 3, 4, 3, 5, 7, 2}, 1},
                    TeamCase{4, {3, Path::kScratch, 1000}, {Format::kInterleaved, 2, 6, 1, 8, 33, 4}, 2},
                    TeamCase{3, {2, Path::kDirect, 4096}, {Format::kByBlock, 4, 5, 2, 3, 5, 8}, 2},
                    TeamCase{6, {2, Path::kAuto, 300}, {Format::kLatent, 3, 7, 1, 16, 9, 2}, 2}));

INSTANTIATE_TEST_SUITE_P(
    PrivateMemory, TeamShuffleTest,
    testing::Values(TeamCase{2, {1, Path::kAuto, 1 << 20}, {Format::kApart, 2, 5, 2, 4, 16, 1}, 0, {0, 1}},
                    TeamCase{3, {2, Path::kAuto, 1}, {Format::kByLayer, 3, 4, 3, 5, 7, 2}, 0, {1}},
                    TeamCase{4, {3, Path::kScratch, 1000}, {Format::kInterleaved, 2, 6, 1, 8, 33, 4}, 0, {0, 3}},
                    TeamCase{3, {2, Path::kDirect, 4096}, {Format::kByBlock, 4, 5, 2, 3, 5, 8}, 0, {0, 1, 2}},
                    TeamCase{1, {2, Path::kAuto, 100}, {Format::kApart, 2, 9, 1, 3, 3, 1}, 0, {0}},
                    TeamCase{3, {2, Path::kAuto, 1 << 20}, {Format::kApart, 40, 9, 1, 3, 3, 1}, 0, {0, 2}},
                    TeamCase{6, {2, Path::kAuto, 300}, {Format::kLatent, 3, 7, 1, 16, 9, 2}, 2, {0, 2, 3}},
                    TeamCase{4, {2, Path::kAuto, 1}, {Format::kApart, 3, 4, 3, 5, 7, 2}, 2, {0, 1, 2, 3}}));

/// The cores that take part in a copy.
std::set<int> cores_at_work(shmem::kv::Copier& copier, std::size_t bytes) {
  std::mutex mutex;
  std::set<int> cores;
  copier.run(bytes, [&](int core, int /*cores*/) {
    const std::lock_guard lock{mutex};
    cores.insert(core);
  });
  return cores;
}

TEST(Copier, UsesOtherCoresForMuchWorkUnlessLimitedToOne) {
  const auto group = *shmem::CoreGroup::create(3, shmem::wait_policy(3));
  auto copier = *shmem::kv::Copier::create(*group, Path::kAuto);
  constexpr std::size_t kMuch = std::size_t{1} << 30;
  EXPECT_EQ(cores_at_work(copier, kMuch), (std::set{0, 1, 2}));
  EXPECT_EQ(cores_at_work(copier, 1000), std::set{0});
  copier.use_one_core(true);
  EXPECT_EQ(cores_at_work(copier, kMuch), std::set{0});
  copier.use_one_core(false);
  EXPECT_EQ(cores_at_work(copier, kMuch), (std::set{0, 1, 2}));
}

class TeamShuffle : public testing::Test {
 protected:
  std::vector<shmem::Error> run(const std::vector<Move>& moves, const Change& change = {}) {
    return played_.run(copies(moves), change);
  }
  void expect_nothing_moved_and_works_again() {
    EXPECT_TRUE(played_.all_caches() == before_);
    const std::vector<Move> moves{{0, 0, 1, 1}, {1, 0, 2, 1}, {2, 0, 0, 1}};
    const auto expected = after(before_, kShape, played_.buffer_bytes(), moves, Mode::kCopy);
    EXPECT_THAT(run(moves), kNoErrors);
    EXPECT_TRUE(played_.all_caches() == expected);
    played_.fill(1);
  }

  static constexpr Shape kShape{Format::kApart, 2, 4, 1, 4, 16, 1};
  PlayedPes played_{3, OperatorSettings{}, kShape};
  const Caches before_ = played_.all_caches();
};

TEST_F(TeamShuffle, TakesTwoSyncsAndOneMoreForStagedBlocksThatFit) {
  EXPECT_THAT(run({{0, 0, 1, 1}}), kNoErrors);
  EXPECT_EQ(played_.syncs(), 2U);
  EXPECT_THAT(run({{0, 0, 1, 1}, {1, 1, 0, 0}}), kNoErrors);
  EXPECT_EQ(played_.syncs(), 5U);
  EXPECT_THAT(run({}), kNoErrors);
  EXPECT_EQ(played_.syncs(), 7U);
}

TEST_F(TeamShuffle, ClearsOnlyAfterASyncThatFollowsAllCopies) {
  EXPECT_THAT(played_.run(*MovePlan::create(std::vector<Move>{{0, 0, 1, 1}}, Mode::kMove)), kNoErrors);
  EXPECT_EQ(played_.syncs(), 3U);
  EXPECT_THAT(played_.run(*MovePlan::create(std::vector<Move>{{0, 0, 1, 1}, {1, 1, 0, 2}}, Mode::kMove)), kNoErrors);
  EXPECT_EQ(played_.syncs(), 6U) << "the sync after staging is enough";
}

TEST_F(TeamShuffle, ReceiversCopyBlocksThatTheirSendersHaveNotStarted) {
  const auto expected = after(before_, kShape, played_.buffer_bytes(), {{0, 0, 1, 1}, {0, 3, 2, 2}}, Mode::kCopy);
  bool agreed = false;
  bool copied = false;
  played_.after_sync = [&](int pe) {
    if (pe == 0 && !agreed) {
      agreed = true;
      // The sender does nothing until the receivers have reached the last sync.
      wait_until_in_sync(played_, 2);
      copied = played_.all_caches() == expected;
    }
  };
  EXPECT_THAT(run({{0, 0, 1, 1}, {0, 3, 2, 2}}), kNoErrors);
  EXPECT_TRUE(copied);
  EXPECT_TRUE(played_.all_caches() == expected);
}

TEST_F(TeamShuffle, AnotherPlanOnOnePeIsReportedOnAll) {
  for (const std::vector<Move>& moves : {std::vector<Move>{}, {{0, 0, 1, 2}}, {{0, 0, 1, 1}, {0, 1, 1, 2}}}) {
    const auto other = copies(moves);
    EXPECT_THAT(run({{0, 0, 1, 1}}, [&](int pe, Call& call) { call.list = pe == 2 ? &other : call.list; }),
                Each(an_error(std::errc::invalid_argument, "PE 2 has another plan than PE 0; nothing has moved")));
    expect_nothing_moved_and_works_again();
  }
}

TEST_F(TeamShuffle, AnotherCacheOnOnePeIsReportedOnAll) {
  const auto expect_difference = [&](const std::function<void(shmem::kv::Cache&)>& change) {
    EXPECT_THAT(run({{0, 0, 1, 1}},
                    [&](int pe, Call& call) {
                      if (pe == 1) {
                        change(call.cache);
                      }
                    }),
                Each(an_error(std::errc::invalid_argument, "PE 1 means another cache than PE 0")));
    expect_nothing_moved_and_works_again();
  };
  expect_difference([](auto& cache) { cache.shape.layers = 1; });
  expect_difference([](auto& cache) { cache.shape.blocks = 3; });
  expect_difference([](auto& cache) { std::swap(cache.shape.page, cache.shape.head_dim); });
  expect_difference([](auto& cache) { std::swap(cache.shape.heads, cache.shape.page); });
  expect_difference([](auto& cache) {
    cache.shape.element_size = 2;
    cache.shape.head_dim /= 2;
  });
  expect_difference([](auto& cache) { std::swap(cache.place.k, cache.place.v); });
  expect_difference([](auto& cache) {
    cache.shape.format = Format::kLatent;
    cache.place.v = nullptr;
  });
}

TEST_F(TeamShuffle, InvalidArgumentsOnOnePeAreReportedOnAll) {
  const auto expect_failure = [&](const std::string& text, const Change& spoil,
                                  const std::vector<Move>& moves = {{0, 0, 1, 1}}) {
    const auto errors = run(moves, [&](int pe, Call& call) {
      if (pe == 1) {
        spoil(pe, call);
      }
    });
    EXPECT_THAT(errors[1], an_error(std::errc::invalid_argument, text));
    for (const int pe : {0, 2}) {
      EXPECT_THAT(errors[static_cast<std::size_t>(pe)],
                  an_error(std::errc::connection_aborted, "PE 1 gave up: Invalid argument"));
    }
    expect_nothing_moved_and_works_again();
  };
  expect_failure("plan is NULL", [](int, auto& call) { call.list = nullptr; });
  expect_failure("the cache's k is NULL", [](int, auto& call) { call.cache.place.k = nullptr; });
  expect_failure("the cache's v is NULL", [](int, auto& call) { call.cache.place.v = nullptr; });
  expect_failure("the cache's v is not NULL", [](int, auto& call) { call.cache.shape.format = Format::kByLayer; });
  expect_failure("overlap", [](int, auto& call) { call.cache.place.v = call.cache.place.k + 1; });
  expect_failure("is not in symmetric memory", [](int, auto& call) { call.cache.shape.blocks = 1000; });
  expect_failure("in their caches blocks 0..0", [](int, auto& call) { call.cache.shape.blocks = 1; });
}

TEST_F(TeamShuffle, AnInvalidBlockOrPeIsReportedOnAll) {
  EXPECT_THAT(run({{0, 0, 3, 1}}), Each(an_error(std::errc::invalid_argument, "there are PEs 0..2")));
  expect_nothing_moved_and_works_again();
  EXPECT_THAT(run({{0, 4, 1, 1}}), Each(an_error(std::errc::invalid_argument, "blocks 0..3")));
  expect_nothing_moved_and_works_again();
}

TEST_F(TeamShuffle, APeThatDoesNotComeEndsTheCall) {
  played_.time_limit = std::chrono::milliseconds{20};
  const auto plan = copies({{0, 0, 1, 1}});
  EXPECT_THAT(played_.run_one(0, {played_.cache(0), &plan, nullptr}),
              an_error(std::errc::timed_out, "kv_shuffle: PE 0, call 1: a PE did not arrive"));
  EXPECT_TRUE(played_.all_caches() == before_);
}

}  // namespace
