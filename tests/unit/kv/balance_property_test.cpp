// SPDX-License-Identifier: Apache-2.0
// The guarantees of the balanced planner on random sequences, and how close its plans are to the best ones.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "tests/support/soak.hpp"
#include "tests/unit/kv/plan_checker.hpp"

namespace {

using kv_test::check_plan;
using kv_test::imbalance;
using kv_test::OwnedSequence;
using kv_test::tokens_of;
using kv_test::views;
using shmem::kv::Mode;
using shmem::kv::plan_sequences;
using shmem::kv::Planner;
using shmem::kv::Planning;
using shmem::kv::SequencePlan;
using Sequences = std::vector<OwnedSequence>;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  /// A number in 0..most.
  std::int64_t upto(std::int64_t most) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most + 1));
  }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (std::size_t i = list.size(); i > 1; --i) {
      std::swap(list[i - 1], list[static_cast<std::size_t>(upto(static_cast<std::int64_t>(i) - 1))]);
    }
  }

 private:
  std::mt19937_64 engine_;
};

struct SequenceKind {
  std::int64_t pes, most_sequences, most_tokens;
  int prefixes;  // how many different common prefixes the sequences have; 0: no hashes
  bool sharing;  // sequences of a PE may share blocks
};

/// Sequences in random blocks of caches, which they may fill completely. Some have a common prefix.
Sequences random_sequences(Random& random, const SequenceKind& kind, const Planning& planning) {
  Sequences sequences;
  for (std::int64_t pe = 0; pe < kind.pes; ++pe) {
    std::vector<std::int64_t> free;
    for (std::int64_t block = 0; block < planning.geometry.blocks; ++block) {
      free.push_back(block);
    }
    random.shuffle(free);
    std::map<std::uint64_t, std::int64_t> known;
    for (std::int64_t count = random.upto(kind.most_sequences); count > 0; --count) {
      OwnedSequence sequence{pe, random.upto(kind.most_tokens), {}};
      const auto full =
          static_cast<std::size_t>((sequence.tokens + planning.geometry.page - 1) / planning.geometry.page);
      const std::size_t blocks = full + static_cast<std::size_t>(random.upto(1));
      if (blocks > free.size()) {
        break;
      }
      const std::int64_t prefix = kind.prefixes == 0 ? 0 : random.upto(kind.prefixes);
      const auto hashed = prefix == 0 ? 0 : std::min(full, static_cast<std::size_t>(1 + random.upto(4)));
      for (std::size_t i = 0; i < blocks; ++i) {
        std::int64_t block = free.back();
        if (i < hashed) {
          sequence.hashes.push_back(static_cast<std::uint64_t>(100 * prefix) + i);
          if (kind.sharing && random.upto(1) == 1) {
            block = known.emplace(sequence.hashes[i], block).first->second;
          }
        }
        if (block == free.back()) {
          free.pop_back();
        }
        sequence.blocks.push_back(block);
      }
      sequences.push_back(std::move(sequence));
    }
    if (random.upto(2) == 0) {
      // Blocks that are in use for other data: an entry without tokens.
      free.resize(static_cast<std::size_t>(random.upto(static_cast<std::int64_t>(free.size()))));
      sequences.push_back({pe, 0, free});
    }
  }
  if (sequences.empty()) {
    sequences.push_back({0, 1, {0}});
  }
  return sequences;
}

/// Without a tolerance no PE crosses the mean, and each token that moves reduces the imbalance by two.
void expect_no_overshoot(const Sequences& sequences, const SequencePlan& plan, std::int64_t pes, std::int64_t page) {
  const auto before = tokens_of(sequences, nullptr, pes);
  const auto after = tokens_of(sequences, &plan, pes);
  std::int64_t all = 0, moved = 0, count = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    all += sequences[i].tokens;
    moved += plan.placements[i].pe != sequences[i].pe ? sequences[i].tokens : 0;
    count += plan.placements[i].pe != sequences[i].pe ? 1 : 0;
  }
  for (std::size_t pe = 0; pe < before.size(); ++pe) {
    const bool above = before[pe] * pes > all;
    EXPECT_TRUE(above ? after[pe] * pes >= all : after[pe] * pes <= all);
  }
  EXPECT_EQ(imbalance(before) - imbalance(after), 2 * pes * moved);
  EXPECT_LE(static_cast<std::int64_t>(plan.moves.size()) * page, moved + count * (page - 1));
}

/// No sequence stays that would still fit on a PE below the mean: see plan_sequences().
void expect_nothing_left(const Sequences& sequences, const SequencePlan& plan, const Planning& planning) {
  const auto before = tokens_of(sequences, nullptr, planning.pes);
  const auto after = tokens_of(sequences, &plan, planning.pes);
  std::vector<std::set<std::int64_t>> used(before.size());
  std::vector<std::int64_t> free(before.size(), planning.geometry.blocks);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    all += sequences[i].tokens;
    used[static_cast<std::size_t>(sequences[i].pe)].insert(sequences[i].blocks.begin(), sequences[i].blocks.end());
    if (plan.placements[i].pe != sequences[i].pe) {
      free[static_cast<std::size_t>(plan.placements[i].pe)] -= static_cast<std::int64_t>(sequences[i].blocks.size());
    }
  }
  const auto slack = static_cast<std::int64_t>(planning.tolerance * static_cast<double>(all));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto from = static_cast<std::size_t>(sequences[i].pe);
    const std::int64_t weight = sequences[i].tokens * planning.pes;
    const std::int64_t above = after[from] * planning.pes - all;
    if (plan.placements[i].pe != sequences[i].pe || weight == 0 || above <= slack || weight > above) {
      continue;
    }
    for (std::size_t pe = 0; pe < before.size(); ++pe) {
      const bool below = before[pe] * planning.pes < all;
      const bool room = static_cast<std::int64_t>(sequences[i].blocks.size() + used[pe].size()) <= free[pe];
      EXPECT_FALSE(below && room && after[pe] * planning.pes + weight <= all + slack)
          << "sequence " << i << " fits PE " << pe;
    }
  }
}

TEST(BalanceProperty, AnyPlanIsCompleteAndKeepsTheGuarantees) {
  int moved = 0, spared = 0;
  for (int seed = 0; seed < test_support::repeats(600, 20000); ++seed) {
    Random random(static_cast<unsigned>(seed));
    Planning planning{
        Planner::kBalanced, Mode::kCopy, 1 + random.upto(8), {20 + random.upto(60), 1 + random.upto(15)}, 0};
    planning.tolerance = seed % 3 == 0 ? 0.1 : 0;
    const SequenceKind kind{planning.pes, 8, 9 * planning.geometry.page, seed % 4, seed % 2 == 0};
    const Sequences sequences = random_sequences(random, kind, planning);
    for (const Mode mode : {Mode::kCopy, Mode::kMove}) {
      planning.mode = mode;
      const auto plan = plan_sequences(views(sequences), planning);
      ASSERT_TRUE(plan) << plan.error().text;
      ASSERT_EQ(check_plan(sequences, planning, *plan), "") << "seed " << seed;
      if (planning.tolerance == 0) {
        expect_no_overshoot(sequences, *plan, planning.pes, planning.geometry.page);
      }
      if (mode == Mode::kCopy) {
        expect_nothing_left(sequences, *plan, planning);
      }
      // Equal arguments at other addresses give the same plan.
      EXPECT_EQ(plan_sequences(views(Sequences(sequences)), planning)->moves, plan->moves);
      moved += static_cast<int>(plan->summary.blocks_moved);
      spared += static_cast<int>(plan->summary.blocks_spared);
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(moved, 1000);
  EXPECT_GT(spared, 100);
}

/// Sequences in which about one number in ten is odd, most of them invalid.
Sequences nonsense(Random& random) {
  const auto number = [&random](std::int64_t most) {
    const std::int64_t odd[] = {-1, 0, most, most + 1, INT64_MAX, INT64_MIN};
    return random.upto(9) == 0 ? odd[random.upto(5)] : random.upto(most);
  };
  Sequences sequences;
  for (std::int64_t count = random.upto(6); count > 0; --count) {
    OwnedSequence sequence{number(3), number(30), {}};
    for (std::int64_t blocks = random.upto(5); blocks > 0; --blocks) {
      sequence.blocks.push_back(number(50));
    }
    for (std::int64_t hashes = random.upto(2); hashes > 0; --hashes) {
      sequence.hashes.push_back(1 + static_cast<std::uint64_t>(random.upto(20)));
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

TEST(BalanceProperty, InvalidSequencesAreRefusedOrPlanned) {
  int planned = 0, refused = 0;
  for (int seed = 0; seed < test_support::repeats(3000, 100'000); ++seed) {
    Random random(static_cast<unsigned>(seed));
    const Sequences sequences = nonsense(random);
    const Planning planning{random.upto(1) == 0 ? Planner::kPair : Planner::kBalanced,
                            random.upto(1) == 0 ? Mode::kCopy : Mode::kMove,
                            4,
                            {51, 10},
                            static_cast<double>(random.upto(2)) / 10};
    const auto plan = plan_sequences(views(sequences), planning);
    if (plan) {
      ASSERT_EQ(check_plan(sequences, planning, *plan), "") << "seed " << seed;
    } else {
      EXPECT_EQ(plan.error().text.rfind("cannot plan: ", 0), 0U);
    }
    ++(plan ? planned : refused);
  }
  EXPECT_GT(planned, 100);
  EXPECT_GT(refused, 100);
}

/// In move mode, the sender's blocks are cleared after they were sent.
TEST(BalanceProperty, NoSequenceUsesABlockThatIsCleared) {
  for (int seed = 0; seed < test_support::repeats(300, 5000); ++seed) {
    Random random(static_cast<unsigned>(seed));
    const Planning planning{Planner::kBalanced, Mode::kMove, 2 + random.upto(5), {60, 8}, 0};
    const Sequences sequences = random_sequences(random, {planning.pes, 8, 60, 2, true}, planning);
    const auto plan = plan_sequences(views(sequences), planning);
    ASSERT_TRUE(plan);
    std::set<std::pair<std::int64_t, std::int64_t>> cleared;
    for (const auto& move : plan->moves) {
      EXPECT_TRUE(cleared.emplace(move.src_pe, move.src_block).second) << "sent twice, seed " << seed;
    }
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      for (const std::int64_t block : plan->placements[i].blocks) {
        EXPECT_EQ(cleared.count({plan->placements[i].pe, block}), 0U) << "seed " << seed;
      }
    }
  }
}

/// Tries all placements of the sequences.
class BruteForce {
 public:
  BruteForce(const Sequences& sequences, const Planning& planning) : sequences_(sequences), planning_(planning) {
    for (const OwnedSequence& sequence : sequences) {
      for (const std::uint64_t hash : sequence.hashes) {
        held_.emplace(sequence.pe, hash);
      }
      to_.push_back(0);
    }
  }

  /// The smallest number of blocks to send for an imbalance of at most `most`.
  std::int64_t fewest_blocks(std::int64_t most) {
    std::int64_t best = INT64_MAX;
    do {
      std::vector<std::int64_t> tokens(static_cast<std::size_t>(planning_.pes));
      for (std::size_t i = 0; i < to_.size(); ++i) {
        tokens[static_cast<std::size_t>(to_[i])] += sequences_[i].tokens;
      }
      if (imbalance(tokens) <= most) {
        best = std::min(best, blocks());
      }
    } while (next());
    return best;
  }

 private:
  /// Counts in base `pes`.
  bool next() {
    for (std::int64_t& digit : to_) {
      if (++digit < planning_.pes) {
        return true;
      }
      digit = 0;
    }
    return false;
  }

  std::int64_t blocks() const {
    auto held = held_;
    std::int64_t sent = 0;
    for (std::size_t i = 0; i < to_.size(); ++i) {
      const OwnedSequence& sequence = sequences_[i];
      if (to_[i] == sequence.pe) {
        continue;
      }
      const auto full = (sequence.tokens + planning_.geometry.page - 1) / planning_.geometry.page;
      sent += full - static_cast<std::int64_t>(sequence.hashes.size());
      for (const std::uint64_t hash : sequence.hashes) {
        sent += held.emplace(to_[i], hash).second ? 1 : 0;
      }
    }
    return sent;
  }

  const Sequences& sequences_;
  const Planning& planning_;
  std::set<std::pair<std::int64_t, std::uint64_t>> held_;
  std::vector<std::int64_t> to_;
};

struct Comparison {
  std::int64_t blocks = 0, fewest = 0, sequences = 0, plans = 0, best_plans = 0;
};

Comparison compare_with_brute_force(int prefixes, int seeds) {
  Comparison total;
  for (int seed = 0; seed < seeds; ++seed) {
    Random random(static_cast<unsigned>(seed));
    const Planning planning{Planner::kBalanced, Mode::kCopy, 2 + random.upto(1), {100, 4 + random.upto(12)}, 0};
    const SequenceKind kind{planning.pes, planning.pes == 2 ? 6 : 3, 6 * planning.geometry.page, prefixes, false};
    const Sequences sequences = random_sequences(random, kind, planning);
    const auto plan = plan_sequences(views(sequences), planning);
    EXPECT_TRUE(plan);
    const std::int64_t fewest =
        BruteForce(sequences, planning).fewest_blocks(imbalance(tokens_of(sequences, &*plan, planning.pes)));
    const auto& summary = plan->summary;
    total.blocks += summary.blocks_moved;
    total.fewest += fewest;
    total.sequences += summary.sequences_moved;
    total.plans += summary.blocks_moved > 0 ? 1 : 0;
    total.best_plans += summary.blocks_moved > 0 && summary.blocks_moved == fewest ? 1 : 0;
    EXPECT_GE(summary.blocks_moved, fewest) << "seed " << seed;
    if (prefixes == 0) {
      EXPECT_LE(summary.blocks_moved, fewest + std::max<std::int64_t>(summary.sequences_moved - 1, 0))
          << "seed " << seed;
    }
  }
  std::cout << (prefixes == 0 ? "no hashes: " : "with hashes: ") << total.blocks << " blocks in " << total.plans
            << " plans, the fewest with no more imbalance: " << total.fewest << "; " << total.best_plans
            << " plans are optimal\n";
  return total;
}

// No plan sends fewer tokens. This one may send more blocks, because blocks need not be full: up to one per sequence,
// minus one.
TEST(BalanceProperty, SendsAtMost5PercentMoreBlocksThanTheBestPlan) {
  const Comparison total = compare_with_brute_force(0, test_support::repeats(300, 3000));
  EXPECT_LE(total.blocks * 100, total.fewest * 105);
}

// The planner chooses sequences by their length, then receivers by their blocks. A plan that considers both at once can
// be better.
TEST(BalanceProperty, SendsAtMost20PercentMoreIfReceiversHaveBlocks) {
  const Comparison total = compare_with_brute_force(3, test_support::repeats(300, 3000));
  EXPECT_LE(total.blocks * 100, total.fewest * 120);
}

Sequences many_sequences(Random& random, std::int64_t pes, bool hashes) {
  Sequences sequences;
  for (std::int64_t pe = 0; pe < pes; ++pe) {
    std::int64_t used = 0;
    for (std::int64_t count = 8 + random.upto(12); count > 0; --count) {
      OwnedSequence sequence{pe, random.upto(1023), {}};
      for (std::int64_t i = 0; i < sequence.tokens / 128 + 1; ++i) {
        sequence.blocks.push_back(used++);
      }
      // A prefix that all sequences share, followed by one that one in a hundred shares.
      const auto prefix = static_cast<std::uint64_t>(random.upto(99));
      for (std::int64_t i = 0; hashes && i < std::min<std::int64_t>(sequence.tokens / 128, 4); ++i) {
        sequence.hashes.push_back(i < 2 ? static_cast<std::uint64_t>(1 + i)
                                        : 100 * (prefix + 1) + static_cast<std::uint64_t>(i));
      }
      sequences.push_back(std::move(sequence));
    }
  }
  return sequences;
}

TEST(BalanceProperty, PlansFor708Pes) {
  for (const bool hashes : {false, true}) {
    Random random(1);
    const Planning planning{Planner::kBalanced, Mode::kCopy, 708, {320, 128}, 0};
    const Sequences sequences = many_sequences(random, planning.pes, hashes);
    const auto given = views(sequences);
    std::vector<double> times;
    std::optional<SequencePlan> plan;
    for (int i = 0; i < test_support::repeats(5, 100); ++i) {
      const auto start = std::chrono::steady_clock::now();
      auto made = plan_sequences(given, planning);
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      ASSERT_TRUE(made);
      plan = *std::move(made);
    }
    std::sort(times.begin(), times.end());
    const auto& summary = plan->summary;
    std::cout << sequences.size() << " sequences" << (hashes ? " with hashes" : "") << " of 708 PEs: " << times.front()
              << " ms, median " << times[times.size() / 2] << " ms; " << summary.sequences_moved << " go, "
              << summary.blocks_moved << " blocks, " << summary.blocks_spared << " spared; most to mean "
              << summary.before.most_to_mean() << " before, " << summary.after.most_to_mean() << " after\n";
    EXPECT_EQ(check_plan(sequences, planning, *plan), "");
    EXPECT_LT(summary.after.imbalance() * 20, summary.before.imbalance());
  }
}

}  // namespace
