// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <random>
#include <set>

#include "kv/operator/pair_plan.hpp"
#include "kv/planner/assignment.hpp"
#include "kv/planner/sequence_plan.hpp"
#include "tests/support/soak.hpp"

namespace {

using shmem::kv::Geometry;
using shmem::kv::kReceive;
using shmem::kv::kSend;
using shmem::kv::Lengths;
using shmem::kv::Move;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Geometry kRoomy{1000, 128};

constexpr std::int64_t blocks_of(std::int64_t tokens, std::int64_t page) {
  return tokens / page + 1;
}

/// A row of Ascend SHMEM's pair table, and its block tables.
struct PePlan {
  std::int64_t peer = 0;
  std::int64_t operation = kReceive;
  std::vector<std::int64_t> source{}, destination{};
};

struct PairsPlan {
  std::vector<PePlan> pes{};
  std::vector<Move> moves{};
};

/// The plan for sequences that lie in the caches one after the other from block 0. Each has room for one more token.
shmem::Result<PairsPlan> plan_pairs(const Lengths& lengths, const Geometry& geometry) {
  std::vector<std::int64_t> blocks(10'000);
  std::iota(blocks.begin(), blocks.end(), std::int64_t{0});
  std::vector<shmem::kv::Sequence> sequences;
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    std::size_t first = 0;
    for (const std::int64_t tokens : lengths[pe]) {
      const auto count =
          static_cast<std::size_t>(geometry.page > 0 && tokens >= 0 ? blocks_of(tokens, geometry.page) : 1);
      if (first + count > blocks.size()) {
        return shmem::fail(std::errc::invalid_argument, "too many blocks");
      }
      sequences.push_back(
          {.pe = static_cast<std::int64_t>(pe), .tokens = tokens, .blocks = std::span(blocks).subspan(first, count)});
      first += count;
    }
  }
  const auto choices = shmem::kv::choose_pairs(lengths.empty() ? Lengths(1) : lengths);
  PairsPlan plan{.pes = std::vector<PePlan>(lengths.size())};
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    plan.pes[pe].peer = static_cast<std::int64_t>(choices[pe].partner);
  }
  if (sequences.empty() && !lengths.empty()) {
    return plan;  // the planner refuses a plan without sequences
  }
  const auto made = shmem::kv::plan_sequences(
      sequences,
      {.planner = shmem::kv::Planner::kPair, .pes = static_cast<std::int64_t>(lengths.size()), .geometry = geometry});
  if (!made) {
    return made.error();
  }
  plan.moves = made->moves;
  for (const Move& move : made->moves) {
    PePlan& sender = plan.pes[static_cast<std::size_t>(move.src_pe)];
    EXPECT_EQ(sender.peer, move.dst_pe);
    sender.operation = kSend;
    sender.source.push_back(move.src_block);
    sender.destination.push_back(move.dst_block);
  }
  return plan;
}

std::int64_t sum(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

TEST(Planner, ASequenceAlwaysHasRoomForOneMoreToken) {
  EXPECT_EQ(blocks_of(0, 128), 1);
  EXPECT_EQ(blocks_of(127, 128), 1);
  EXPECT_EQ(blocks_of(128, 128), 2);
  EXPECT_EQ(blocks_of(1023, 128), 8);
}

// Sums 1000, 300, 2000, 900; mean 1050. Ascending: 1, 3, 0, 2. Pairs 1-2 and 3-0.
// PE 2 is 950 above the mean, PE 1 is 750 below: of {600, 100, 700, 600} tokens, 600 and 100 fit into 750, the others
// do not. PE 0 and PE 3 are both below the mean, so their pair is idle.
TEST(Planner, SendsTheSequencesThatFitFromTheHighestToTheLowest) {
  const auto plan = plan_pairs({{1000}, {300}, {600, 100, 700, 600}, {900}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pes[0].peer, 3);
  EXPECT_EQ(plan->pes[1].peer, 2);
  EXPECT_EQ(plan->pes[2].peer, 1);
  EXPECT_EQ(plan->pes[3].peer, 0);
  EXPECT_EQ(plan->pes[2].operation, kSend);
  for (const std::size_t pe : {0U, 1U, 3U}) {
    EXPECT_EQ(plan->pes[pe].operation, kReceive);
    EXPECT_THAT(plan->pes[pe].source, IsEmpty());
  }
  // 600 tokens are blocks 0..4, 100 tokens are block 5; PE 1 has 3 blocks in use.
  EXPECT_THAT(plan->pes[2].source, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(plan->pes[2].destination, ElementsAre(3, 4, 5, 6, 7, 8));
}

// Mean 500; the pair may move fewer than 300 tokens. A sequence that would use up the rest exactly stays.
TEST(Planner, LeavesASequenceThatWouldReachTheMean) {
  const auto plan = plan_pairs({{300, 299, 1, 200}, {200}}, kRoomy);
  ASSERT_TRUE(plan);
  // 300 is not less than 300. 299 is, and leaves 1; the sequence of 1 token is not less than that.
  EXPECT_THAT(plan->pes[0].source, ElementsAre(3, 4, 5));
  EXPECT_EQ(plan->pes[0].operation, kSend);
}

TEST(Planner, SkipsALongSequenceForShorterOnesBehindIt) {
  const auto plan = plan_pairs({{1000, 10, 20}, {0}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->pes[0].source, ElementsAre(8, 9));
  EXPECT_THAT(plan->pes[0].destination, ElementsAre(1, 2));
}

TEST(Planner, AnOverloadedPeWhoseSequencesAllAreTooLongIsIdle) {
  const auto plan = plan_pairs({{1000}, {100}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pes[0].operation, kReceive);
  EXPECT_THAT(plan->pes[0].source, IsEmpty());
}

TEST(Planner, EmptySequencesAreNotSentAlone) {
  EXPECT_THAT(plan_pairs({{0, 1000}, {100}}, kRoomy)->moves, IsEmpty());
}

TEST(Planner, EmptySequencesAreSentWithOthers) {
  const auto plan = plan_pairs({{0, 50, 1000}, {100}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pes[0].operation, kSend);
  EXPECT_THAT(plan->pes[0].source, ElementsAre(0, 1));
}

TEST(Planner, MovesFewerThan32KiTokens) {
  const auto plan = plan_pairs({{32767, 1, 32768, 60000}, {0}}, {4000, 128});
  ASSERT_TRUE(plan);
  EXPECT_EQ(static_cast<std::int64_t>(plan->pes[0].source.size()), blocks_of(32767, 128));
}

TEST(Planner, PairsEqualSumsInPeOrder) {
  const auto plan = plan_pairs(Lengths(100, {5}), kRoomy);
  ASSERT_TRUE(plan);
  for (std::size_t pe = 0; pe < 100; ++pe) {
    EXPECT_EQ(plan->pes[pe].peer, static_cast<std::int64_t>(99 - pe));
  }
}

TEST(Planner, PairsTheMiddleOfAnOddNumberWithItself) {
  const auto plan = plan_pairs({{10}, {500}, {2000, 20}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pes[1].peer, 1);
  EXPECT_EQ(plan->pes[1].operation, kReceive);
}

TEST(Planner, OnePeIsPairedWithItself) {
  const auto plan = plan_pairs({{1000}}, kRoomy);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->pes[0].peer, 0);
  EXPECT_EQ(plan->pes[0].operation, kReceive);
}

TEST(Planner, NamesAReceiverWithoutRoom) {
  // PE 1 has 9 of 11 blocks in use and no tokens. PE 0 would send 4 blocks.
  const auto plan = plan_pairs({{400, 800}, std::vector<std::int64_t>(9, 0)}, {11, 128});
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().text, HasSubstr("PE 1 has 9 of its 11 blocks in use and no room for the 4 that PE 0"));
}

TEST(Planner, RefusesInvalidArguments) {
  EXPECT_FALSE(plan_pairs({}, kRoomy));
  EXPECT_FALSE(plan_pairs({{1}}, {0, 128}));
  EXPECT_FALSE(plan_pairs({{1}}, {10, 0}));
  EXPECT_FALSE(plan_pairs({{1}}, {INT64_MAX, 128}));
  const auto negative = plan_pairs({{1}, {5, -1}}, kRoomy);
  ASSERT_FALSE(negative);
  EXPECT_THAT(negative.error().text, HasSubstr("sequence 2 (of PE 1) has -1 tokens"));
}

Lengths random_lengths(std::mt19937& random) {
  Lengths lengths(1 + random() % 17);
  for (auto& sequences : lengths) {
    sequences.resize(random() % 8);
    for (auto& tokens : sequences) {
      tokens = static_cast<std::int64_t>(random() % 1024);
    }
  }
  return lengths;
}

/// balance_kv and transfer_kv of the reference's scripts/golden.py, step by step. Gives the table of PE p, which is
/// empty if it sends nothing.
class Golden {
 public:
  explicit Golden(const Lengths& kv_lens) : kv_lens_(kv_lens), pair_(kv_lens.size()), kv_sum_(kv_lens.size()) {
    const std::size_t pe_size = kv_lens.size();
    std::int64_t total = 0;
    for (std::size_t pe = 0; pe < pe_size; ++pe) {
      used_blocks_.push_back(0);
      for (const std::int64_t kv_len : kv_lens[pe]) {
        kv_sum_[pe] += kv_len;
        used_blocks_[pe] += kv_len / 128 + 1;
      }
      total += kv_sum_[pe];
    }
    // As int(mean) in Python: the sums are not negative, so it rounds down.
    kv_mean_ = total / std::max<std::int64_t>(static_cast<std::int64_t>(pe_size), 1);
    // A bubble sort is stable, as Python's sorted() is.
    std::vector<std::size_t> sorted_pes(pe_size);
    std::iota(sorted_pes.begin(), sorted_pes.end(), std::size_t{0});
    for (std::size_t round = 0; round < pe_size; ++round) {
      for (std::size_t i = 1; i < pe_size; ++i) {
        if (kv_sum_[sorted_pes[i - 1]] > kv_sum_[sorted_pes[i]]) {
          std::swap(sorted_pes[i - 1], sorted_pes[i]);
        }
      }
    }
    for (std::size_t left = 0, right = pe_size; left < right--; ++left) {
      pair_[sorted_pes[left]] = sorted_pes[right];
      pair_[sorted_pes[right]] = sorted_pes[left];
    }
  }

  PePlan transfer(std::size_t pe) const {
    const std::size_t pair_pe = pair_[pe];
    PePlan plan{static_cast<std::int64_t>(pair_pe), 1, {}, {}};
    const bool both_above = kv_sum_[pe] >= kv_mean_ && kv_sum_[pair_pe] >= kv_mean_;
    if (kv_sum_[pe] <= kv_mean_ || both_above) {
      return plan;
    }
    std::int64_t transfer_tokens =
        std::min({std::abs(kv_sum_[pe] - kv_mean_), std::abs(kv_sum_[pair_pe] - kv_mean_), std::int64_t{32768}});
    std::int64_t transferred = 0, block = 0, dst = used_blocks_[pair_pe];
    for (const std::int64_t kv_len : kv_lens_[pe]) {
      const bool taken = transfer_tokens > kv_len;
      for (std::int64_t i = 0; i < kv_len / 128 + 1; ++i, ++block) {
        if (taken) {
          plan.source.push_back(block);
          plan.destination.push_back(dst++);
        }
      }
      transfer_tokens -= taken ? kv_len : 0;
      transferred += taken ? kv_len : 0;
    }
    plan.operation = transferred > 0 ? 0 : 1;
    return plan;
  }

 private:
  const Lengths& kv_lens_;
  std::vector<std::size_t> pair_;
  std::vector<std::int64_t> kv_sum_, used_blocks_;
  std::int64_t kv_mean_ = 0;
};

void expect_golden(const Lengths& lengths, const Geometry& geometry) {
  const auto plan = plan_pairs(lengths, geometry);
  ASSERT_TRUE(plan) << plan.error().text;
  const Golden golden(lengths);
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    const auto right = golden.transfer(pe);
    EXPECT_EQ(plan->pes[pe].peer, right.peer);
    EXPECT_EQ(plan->pes[pe].operation, right.operation);
    if (right.operation == kSend) {
      EXPECT_EQ(plan->pes[pe].source, right.source);
      EXPECT_EQ(plan->pes[pe].destination, right.destination);
    }
  }
}

TEST(Planner, PlansAreIdenticalToTheReference) {
  std::mt19937 random{42};
  for (int i = 0; i < test_support::repeats(1000, 100'000); ++i) {
    // Half of the inputs are the reference's own: five sequences of 0..1023 tokens each. The others are special cases:
    // no sequences, empty ones, ties, multiples of the page, more tokens than may move at once.
    Lengths lengths(1 + random() % 33);
    for (auto& sequences : lengths) {
      sequences.resize(i % 2 == 0 ? 5 : random() % 7);
      for (auto& tokens : sequences) {
        const std::array<std::int64_t, 5> odd{0, 1, 128, 128 * static_cast<std::int64_t>(random() % 9),
                                              static_cast<std::int64_t>(random() % 70'000)};
        tokens = i % 2 == 0 ? static_cast<std::int64_t>(random() % 1024) : odd[random() % odd.size()];
      }
    }
    expect_golden(lengths, {i % 2 == 0 ? 80 : 10'000, 128});
    ASSERT_FALSE(HasFailure()) << "instance " << i;
  }
}

/// The requirements of the operator on its tables.
void expect_valid_tables(const std::vector<PePlan>& plan, const Geometry& geometry) {
  std::vector<std::int64_t> table;
  for (const auto& part : plan) {
    table.insert(table.end(), {part.peer, part.operation});
    EXPECT_EQ(part.source.size(), part.destination.size());
    EXPECT_EQ(std::set<std::int64_t>(part.destination.begin(), part.destination.end()).size(), part.destination.size());
    for (const auto* blocks : {&part.source, &part.destination}) {
      EXPECT_TRUE(std::all_of(blocks->begin(), blocks->end(),
                              [&](std::int64_t block) { return block >= 0 && block < geometry.blocks; }));
    }
  }
  const auto valid = shmem::kv::PairTable(table.data(), static_cast<int>(plan.size())).check();
  EXPECT_TRUE(valid) << valid.error().text;
}

/// The tokens of the sequences whose blocks are in the table.
std::int64_t tokens_sent(const std::vector<std::int64_t>& sequences, const std::vector<std::int64_t>& source,
                         const Geometry& geometry) {
  const std::set<std::int64_t> sent(source.begin(), source.end());
  std::int64_t tokens = 0;
  std::int64_t first = 0;
  for (const std::int64_t length : sequences) {
    const std::int64_t blocks = blocks_of(length, geometry.page);
    // A sequence is sent completely or not at all.
    for (std::int64_t i = 1; i < blocks; ++i) {
      EXPECT_EQ(sent.count(first + i), sent.count(first));
    }
    tokens += sent.count(first) != 0 ? length : 0;
    first += blocks;
  }
  return tokens;
}

TEST(Planner, AnyPlanHasValidTablesAndLetsNoPeCrossTheMean) {
  std::mt19937 random{7};
  const Geometry geometry{200, 128};
  int senders = 0;
  for (int i = 0; i < 2000; ++i) {
    const Lengths lengths = random_lengths(random);
    const auto plan = plan_pairs(lengths, geometry);
    ASSERT_TRUE(plan) << plan.error().text;
    expect_valid_tables(plan->pes, geometry);
    std::int64_t all = 0;
    for (const auto& sequences : lengths) {
      all += sum(sequences);
    }
    const std::int64_t mean = all / static_cast<std::int64_t>(lengths.size());
    for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
      const auto& part = plan->pes[pe];
      if (part.operation != kSend) {
        continue;
      }
      ++senders;
      const std::int64_t sent = tokens_sent(lengths[pe], part.source, geometry);
      EXPECT_GT(sent, 0);
      EXPECT_GT(sum(lengths[pe]) - sent, mean);
      EXPECT_LT(sum(lengths[static_cast<std::size_t>(part.peer)]) + sent, mean);
    }
  }
  EXPECT_GT(senders, 1000);
}

}  // namespace
