// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/sequence_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "kv/planner/assignment.hpp"

namespace shmem::kv {
namespace {

using Destinations = std::vector<std::int64_t>;  // the PE of each sequence

/// A PE that would have to take `blocks` from another one.
Error no_room(std::size_t pe, std::int64_t used, const Geometry& geometry, std::int64_t blocks, std::size_t sender) {
  return fail(
      std::errc::no_buffer_space,
      fmt::format("cannot plan: PE {} has {} of its {} blocks in use and no room for the {} that PE {} would send", pe,
                  used, geometry.blocks, blocks, sender));
}

/// The blocks of the PEs below the mean.
BlockIndex index_receivers(std::span<const Sequence> sequences, const Holdings& holdings, std::int64_t pes) {
  std::vector<std::size_t> theirs;
  std::size_t hashes = 0;
  for (std::size_t pe = 0; pe < static_cast<std::size_t>(pes); ++pe) {
    if (holdings.above(pe) < 0) {
      for (const std::size_t i : holdings.sequences_of(pe)) {
        theirs.push_back(i);
        hashes += sequences[i].hashes.size();
      }
    }
  }
  // Placer adds those that it sends.
  BlockIndex index(2 * hashes);
  for (const std::size_t i : theirs) {
    for (std::size_t block = 0; block < sequences[i].hashes.size(); ++block) {
      index.add(sequences[i].hashes[block], sequences[i].pe, sequences[i].blocks[block]);
    }
  }
  return index;
}

Lengths lengths_of(std::span<const Sequence> sequences, const Holdings& holdings, std::size_t pes) {
  Lengths lengths(pes);
  for (std::size_t pe = 0; pe < pes; ++pe) {
    for (const std::size_t i : holdings.sequences_of(pe)) {
      lengths[pe].push_back(sequences[i].tokens);
    }
  }
  return lengths;
}

/// What one PE sends to its partner.
Result<void> send_pair(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning,
                       const PairChoice& pair, std::size_t pe, Destinations& to) {
  std::int64_t blocks = 0;
  for (const std::size_t taken : pair.taken) {
    const std::size_t i = holdings.sequences_of(pe)[taken];
    if (planning.mode == Mode::kMove && holdings.shares(i)) {
      return fail(
          std::errc::invalid_argument,
          fmt::format("cannot plan: sequence {} of PE {} would go, and its blocks be cleared, some of which are "
                      "those of another sequence, too",
                      i, pe));
    }
    blocks += static_cast<std::int64_t>(sequences[i].blocks.size());
    to[i] = static_cast<std::int64_t>(pair.partner);
  }
  const auto used = static_cast<std::int64_t>(holdings.used(pair.partner).size());
  if (blocks > planning.geometry.blocks - used) {
    return no_room(pair.partner, used, planning.geometry, blocks, pe);
  }
  return {};
}

Result<Destinations> pair_destinations(std::span<const Sequence> sequences, const Holdings& holdings,
                                       const Planning& planning) {
  Destinations to;
  for (const Sequence& sequence : sequences) {
    to.push_back(sequence.pe);
  }
  const auto pes = static_cast<std::size_t>(planning.pes);
  const auto pairs = choose_pairs(lengths_of(sequences, holdings, pes));
  for (std::size_t pe = 0; pe < pes; ++pe) {
    auto ok = pairs[pe].sends ? send_pair(sequences, holdings, planning, pairs[pe], pe, to) : Result<void>{};
    if (!ok) {
      return ok.error();
    }
  }
  return to;
}

PlanSummary summarise(std::span<const Sequence> sequences, const Holdings& holdings, const Destinations& to,
                      const SequencePlan& plan, std::int64_t pes) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(pes));
  for (std::size_t pe = 0; pe < tokens.size(); ++pe) {
    tokens[pe] = holdings.tokens(pe);
  }
  PlanSummary summary;
  summary.before = spread_of(tokens);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    tokens[static_cast<std::size_t>(sequences[i].pe)] -= sequences[i].tokens;
    tokens[static_cast<std::size_t>(to[i])] += sequences[i].tokens;
    summary.sequences_moved += to[i] != sequences[i].pe ? 1 : 0;
  }
  summary.after = spread_of(tokens);
  summary.blocks_moved = static_cast<std::int64_t>(plan.moves.size());
  return summary;
}

}  // namespace

Spread spread_of(const std::vector<std::int64_t>& tokens) {
  Spread spread;
  spread.pes = static_cast<std::int64_t>(tokens.size());
  for (const std::int64_t mine : tokens) {
    spread.tokens += mine;
    spread.most = std::max(spread.most, mine);
  }
  for (const std::int64_t mine : tokens) {
    spread.imbalance_times_pes += std::abs(spread.pes * mine - spread.tokens);
  }
  return spread;
}

Result<SequencePlan> plan_sequences(std::span<const Sequence> sequences, const Planning& planning) {
  const auto holdings = Holdings::create(sequences, planning);
  if (!holdings) {
    return holdings.error();
  }
  const bool balanced = planning.planner == Planner::kBalanced;
  BlockIndex held = balanced ? index_receivers(sequences, *holdings, planning.pes) : BlockIndex(0);
  const auto to = balanced ? Result<Destinations>(Assignment(sequences, *holdings, planning, held).run())
                           : pair_destinations(sequences, *holdings, planning);
  if (!to) {
    return to.error();
  }
  Placer placer(sequences, *holdings, planning, std::move(held));
  for (const std::int64_t pe : *to) {
    placer.place(pe);
  }
  SequencePlan plan{.moves = placer.take_moves(), .placements = placer.take_placements()};
  plan.summary = summarise(sequences, *holdings, *to, plan, planning.pes);
  plan.summary.blocks_spared = placer.blocks_spared();
  return plan;
}

}  // namespace shmem::kv
