// SPDX-License-Identifier: Apache-2.0
// Plans both public traces from start to end, with the pair planner and the balanced one.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "tests/support/soak.hpp"
#include "tests/support/traces.hpp"
#include "tests/unit/kv/plan_checker.hpp"
#include "tools/kv_shuffle/trace.hpp"

namespace {

using kv_program::PageTables;
using kv_program::WindowDealer;
using kv_test::imbalance;
using kv_test::OwnedSequence;
using kv_test::tokens_of;
using shmem::kv::Planner;
using shmem::kv::Planning;

/// The result of one window, or the sum over all.
struct Result {
  double before = 0, after = 0;  // tokens
  double most_to_mean = 0;
  std::int64_t blocks = 0, spared = 0;

  [[nodiscard]] double blocks_per_token() const { return static_cast<double>(blocks) / (before - after); }
  void add(const Result& other) {
    before += other.before;
    after += other.after;
    most_to_mean += other.most_to_mean;
    blocks += other.blocks;
    spared += other.spared;
  }
};

std::vector<OwnedSequence> sequences_of(const PageTables& tables) {
  std::vector<OwnedSequence> sequences;
  for (const auto& sequence : tables.sequences()) {
    sequences.push_back({sequence.pe,
                         sequence.tokens,
                         {sequence.blocks, sequence.blocks + sequence.block_count},
                         {sequence.hashes, sequence.hashes + sequence.hash_count}});
  }
  return sequences;
}

Result plan_window(const PageTables& tables, const Planning& planning) {
  const auto sequences = sequences_of(tables);
  const auto plan = plan_sequences(views(sequences), planning);
  EXPECT_TRUE(plan) << plan.error().text;
  if (!plan) {
    return {};
  }
  EXPECT_EQ(check_plan(sequences, planning, *plan), "");
  const auto after = tokens_of(sequences, &*plan, planning.pes);
  double most = 0, all = 0;
  for (const std::int64_t tokens : after) {
    most = std::max(most, static_cast<double>(tokens));
    all += static_cast<double>(tokens);
  }
  const auto pes = static_cast<double>(planning.pes);
  return {static_cast<double>(imbalance(tokens_of(sequences, nullptr, planning.pes))) / pes,
          static_cast<double>(imbalance(after)) / pes, most * pes / all, static_cast<std::int64_t>(plan->moves.size()),
          plan->summary.blocks_spared};
}

class TraceReplay : public testing::TestWithParam<int> {
 protected:
  void replay(const std::string& file, const shmem::kv::Geometry& geometry) {
    const std::string path = test_support::public_trace(file);
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << path << test_support::kNoTrace;
    }
    auto made = WindowDealer::create(*kv_program::TraceFile::open(path), GetParam(), {geometry.blocks, geometry.page});
    ASSERT_TRUE(made) << made.error().text;
    WindowDealer dealer = *std::move(made);
    Result pair, balanced;
    int windows = 0, half = 0, no_dearer = 0;
    for (; dealer.dealt() < dealer.requests(); ++windows) {
      auto window = dealer.next();
      ASSERT_TRUE(window) << window.error().text;
      const PageTables tables(*std::move(window), geometry.page);
      Planning planning{Planner::kPair, shmem::kv::Mode::kCopy, GetParam(), geometry, 0};
      const Result in_pairs = plan_window(tables, planning);
      planning.planner = Planner::kBalanced;
      const Result in_balance = plan_window(tables, planning);
      half += in_balance.after * 2 <= in_pairs.after ? 1 : 0;
      no_dearer += in_pairs.blocks == 0 || in_balance.blocks_per_token() <= in_pairs.blocks_per_token() ? 1 : 0;
      pair.add(in_pairs);
      balanced.add(in_balance);
    }
    const auto line = [&](const char* name, const Result& result) {
      std::printf("  %-8s imbalance %9.0f -> %8.0f, most to mean %.3f, %6ld blocks sent, %5ld spared, %.5f per token\n",
                  name, result.before, result.after, result.most_to_mean / windows, static_cast<long>(result.blocks),
                  static_cast<long>(result.spared), result.blocks_per_token());
    };
    std::printf("%s, %d PEs, caches of %ld blocks of %ld tokens, scale 1/%ld: %d windows\n", file.c_str(), GetParam(),
                static_cast<long>(geometry.blocks), static_cast<long>(geometry.page), static_cast<long>(dealer.scale()),
                windows);
    line("pair", pair);
    line("balanced", balanced);
    std::printf("  windows with at most half the imbalance: %d; with no more blocks per token of it: %d\n", half,
                no_dearer);
    EXPECT_LE(balanced.after * 2, pair.after);
    EXPECT_LE(balanced.blocks_per_token(), pair.blocks_per_token());
  }

  /// With the program's default caches; in a soak also with caches as large as those of large models.
  void replay(const std::string& file) {
    replay(file, {160, 64});
    if (test_support::repeats(0, 1) > 0) {
      replay(file, {2560, 16});
      replay(file, {10240, 128});
    }
  }
};

TEST_P(TraceReplay, Mooncake) {
  replay("mooncake_conversation_2000.jsonl");
}

TEST_P(TraceReplay, Azure) {
  replay("azure_llm_inference_conv.csv");
}

INSTANTIATE_TEST_SUITE_P(Pes, TraceReplay, testing::Values(2, 8, 64));

}  // namespace
