// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/round_plan.hpp"

#include <algorithm>
#include <numeric>

#include "shmem/kv/pair_table.hpp"
#include "shmem/kv/program/placement_check.hpp"
#include "shmem/kv/sequence_plan.hpp"

namespace kv_program {
namespace {

using shmem::Result;
using shmem::kv::Lengths;
using shmem::kv::PairPlan;
using shmem::kv::TraceWindow;

Load load_of(const Lengths& lengths) {
  Load load;
  for (const auto& sequences : lengths) {
    load.push_back(std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0}));
  }
  return load;
}

/// A sequence that is sent counts where it goes to: that PE goes on with it.
Load load_after(const Lengths& lengths, const PairPlan& plan, std::int64_t page) {
  Load load = load_of(lengths);
  for (std::size_t pe = 0; pe < plan.size(); ++pe) {
    const auto& source = plan[pe].source;
    std::int64_t first = 0;
    for (const std::int64_t tokens : lengths[pe]) {
      if (plan[pe].operation == shmem::kv::kSend && std::binary_search(source.begin(), source.end(), first)) {
        load[pe] -= tokens;
        load[static_cast<std::size_t>(plan[pe].peer)] += tokens;
      }
      first += shmem::kv::blocks_of(tokens, page);
    }
  }
  return load;
}

Result<RoundPlan> plan_in_pairs(const Options& options, const Lengths& lengths) {
  auto pairs = shmem::kv::plan_pairs(lengths, options.geometry());
  if (!pairs) {
    return tl::make_unexpected(pairs.error());
  }
  RoundPlan plan{.moves = shmem::kv::moves_of(*pairs),
                 .before = load_of(lengths),
                 .after = load_after(lengths, *pairs, options.shape.page_size)};
  // A pair table cannot say that blocks are cleared.
  if (options.mode == Mode::kCopy) {
    plan.pairs = *std::move(pairs);
  }
  return plan;
}

Result<RoundPlan> plan_balanced(const Options& options, TraceWindow window) {
  const auto pes = static_cast<std::int64_t>(window.size());
  RoundPlan round{.moves = {}, .before = load_of(shmem::kv::lengths_of(window)), .after = Load(window.size())};
  const shmem::kv::PageTables tables{std::move(window), options.shape.page_size};
  const shmem::kv::Planning planning{
      .planner = shmem::kv::Planner::kBalanced,
      .mode = options.mode == Mode::kMove ? shmem::kv::Mode::kMove : shmem::kv::Mode::kCopy,
      .pes = pes,
      .geometry = options.geometry(),
      .tolerance = options.tolerance};
  const auto plan = shmem::kv::plan_sequences(tables.sequences(), planning);
  if (!plan) {
    return tl::make_unexpected(plan.error());
  }
  if (options.check) {
    if (const std::string lost = find_misplaced(tables.sequences(), *plan, planning); !lost.empty()) {
      return shmem::fail(std::errc::protocol_error, lost);
    }
  }
  for (std::size_t i = 0; i < plan->placements.size(); ++i) {
    round.after[static_cast<std::size_t>(plan->placements[i].pe)] += tables.sequences()[i].tokens;
  }
  round.moves = plan->moves;
  round.spared = plan->summary.blocks_spared;
  return round;
}

}  // namespace

Result<RoundPlan> plan_round(const Options& options, TraceWindow window) {
  return options.planner == Planner::kPair ? plan_in_pairs(options, shmem::kv::lengths_of(window))
                                           : plan_balanced(options, std::move(window));
}

}  // namespace kv_program
