// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/planner.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>

#include "shmem/kv/pair_table.hpp"

namespace shmem::kv {
namespace {

/// Most tokens that one PE sends in one plan.
constexpr std::int64_t kMostMoved = 32768;
/// Beyond these no cache is; below them no sum of tokens overflows.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 31;
constexpr std::int64_t kMostTokensInPage = std::int64_t{1} << 20;

tl::unexpected<Error> refuse(std::errc code, const std::string& what) {
  return fail(code, "cannot plan: " + what);
}

std::string pe_name(std::size_t pe) {
  return "PE " + std::to_string(pe);
}

/// What a PE holds before the plan.
struct Load {
  std::int64_t tokens = 0;
  std::int64_t blocks = 0;
};

Result<Load> load_of(const std::vector<std::int64_t>& sequences, std::size_t pe, const Geometry& geometry) {
  Load load;
  for (const std::int64_t tokens : sequences) {
    if (tokens < 0) {
      return refuse(std::errc::invalid_argument,
                    pe_name(pe) + " has a sequence of " + std::to_string(tokens) + " tokens");
    }
    const std::int64_t blocks = blocks_of(tokens, geometry.page);
    if (blocks > geometry.blocks - load.blocks) {
      return refuse(std::errc::no_buffer_space, "the " + std::to_string(sequences.size()) + " sequences of " +
                                                    pe_name(pe) + " do not fit into its " +
                                                    std::to_string(geometry.blocks) + " blocks of " +
                                                    std::to_string(geometry.page) + " tokens");
    }
    load.tokens += tokens;
    load.blocks += blocks;
  }
  return load;
}

Result<std::vector<Load>> loads_of(const Lengths& lengths, const Geometry& geometry) {
  if (lengths.empty() || geometry.blocks < 1 || geometry.blocks > kMostBlocks || geometry.page < 1 ||
      geometry.page > kMostTokensInPage) {
    return refuse(std::errc::invalid_argument, std::to_string(lengths.size()) + " PEs with caches of " +
                                                   std::to_string(geometry.blocks) + " blocks of " +
                                                   std::to_string(geometry.page) + " tokens");
  }
  std::vector<Load> loads;
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    auto load = load_of(lengths[pe], pe, geometry);
    if (!load) {
      return tl::make_unexpected(load.error());
    }
    loads.push_back(*load);
  }
  return loads;
}

/// Position s of the PEs in ascending order of tokens is paired with position n - 1 - s. With an odd number the one in
/// the middle is paired with itself.
std::vector<std::size_t> partners_of(const std::vector<Load>& loads) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a].tokens < loads[b].tokens; });
  std::vector<std::size_t> partner(loads.size());
  for (std::size_t s = 0; s < order.size(); ++s) {
    partner[order[s]] = order[order.size() - 1 - s];
  }
  return partner;
}

std::int64_t mean_tokens(const std::vector<Load>& loads) {
  const auto add = [](std::int64_t sum, const Load& load) { return sum + load.tokens; };
  return std::accumulate(loads.begin(), loads.end(), std::int64_t{0}, add) / static_cast<std::int64_t>(loads.size());
}

/// Takes whole sequences while each is less than what is left of `budget`, and lists their blocks. Returns the tokens
/// taken.
std::int64_t take_sequences(const std::vector<std::int64_t>& sequences, std::int64_t page, std::int64_t budget,
                            std::vector<std::int64_t>& blocks) {
  std::int64_t taken = 0;
  std::int64_t first = 0;
  for (const std::int64_t tokens : sequences) {
    const std::int64_t count = blocks_of(tokens, page);
    if (budget > tokens) {
      budget -= tokens;
      taken += tokens;
      for (std::int64_t i = 0; i < count; ++i) {
        blocks.push_back(first + i);
      }
    }
    first += count;
  }
  return taken;
}

PePlan plan_pe(const std::vector<std::int64_t>& sequences, std::int64_t page, const Load& mine, const Load& partners,
               std::int64_t mean) {
  PePlan plan{0, kReceive, {}, {}};
  const std::int64_t above = mine.tokens - mean;
  const std::int64_t below = mean - partners.tokens;
  if (above <= 0 || below <= 0) {
    return plan;
  }
  const std::int64_t budget = std::min({above, below, kMostMoved});
  // Empty sequences may be all that fits: they have blocks but no tokens, and then nothing is sent.
  if (take_sequences(sequences, page, budget, plan.source) > 0) {
    plan.operation = kSend;
  }
  plan.destination.resize(plan.source.size());
  std::iota(plan.destination.begin(), plan.destination.end(), partners.blocks);
  return plan;
}

}  // namespace

Result<PairPlan> plan_pairs(const Lengths& lengths, const Geometry& geometry) {
  const auto loads = loads_of(lengths, geometry);
  if (!loads) {
    return tl::make_unexpected(loads.error());
  }
  const std::vector<std::size_t> partner = partners_of(*loads);
  const std::int64_t mean = mean_tokens(*loads);
  PairPlan plan;
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    const Load& theirs = (*loads)[partner[pe]];
    PePlan part = plan_pe(lengths[pe], geometry.page, (*loads)[pe], theirs, mean);
    part.peer = static_cast<std::int64_t>(partner[pe]);
    const auto moved = static_cast<std::int64_t>(part.source.size());
    if (part.operation == kSend && moved > geometry.blocks - theirs.blocks) {
      return refuse(std::errc::no_buffer_space, pe_name(partner[pe]) + " has " + std::to_string(theirs.blocks) +
                                                    " of its " + std::to_string(geometry.blocks) +
                                                    " blocks in use and no room for the " + std::to_string(moved) +
                                                    " that " + pe_name(pe) + " would send");
    }
    plan.push_back(std::move(part));
  }
  return plan;
}

std::vector<Move> moves_of(const PairPlan& plan) {
  std::vector<Move> moves;
  for (std::size_t pe = 0; pe < plan.size(); ++pe) {
    const PePlan& part = plan[pe];
    const std::size_t count = part.operation == kSend ? part.source.size() : 0;
    for (std::size_t i = 0; i < count; ++i) {
      moves.push_back({static_cast<std::int64_t>(pe), part.source[i], part.peer, part.destination[i]});
    }
  }
  return moves;
}

}  // namespace shmem::kv
