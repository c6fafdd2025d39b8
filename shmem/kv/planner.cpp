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

std::int64_t sum(const std::vector<std::int64_t>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

/// The blocks of a PE's sequences.
Result<std::int64_t> count_blocks(const std::vector<std::int64_t>& sequences, std::size_t pe,
                                  const Geometry& geometry) {
  std::int64_t used = 0;
  for (const std::int64_t tokens : sequences) {
    if (tokens < 0) {
      return refuse(std::errc::invalid_argument,
                    pe_name(pe) + " has a sequence of " + std::to_string(tokens) + " tokens");
    }
    const std::int64_t blocks = blocks_of(tokens, geometry.page);
    if (blocks > geometry.blocks - used) {
      return refuse(std::errc::no_buffer_space, "the " + std::to_string(sequences.size()) + " sequences of " +
                                                    pe_name(pe) + " do not fit into its " +
                                                    std::to_string(geometry.blocks) + " blocks of " +
                                                    std::to_string(geometry.page) + " tokens");
    }
    used += blocks;
  }
  return used;
}

Result<std::vector<std::int64_t>> count_all_blocks(const Lengths& lengths, const Geometry& geometry) {
  if (auto ok = check_geometry(geometry, lengths.size()); !ok) {
    return tl::make_unexpected(ok.error());
  }
  std::vector<std::int64_t> used;
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    const auto blocks = count_blocks(lengths[pe], pe, geometry);
    if (!blocks) {
      return tl::make_unexpected(blocks.error());
    }
    used.push_back(*blocks);
  }
  return used;
}

/// Position s of the PEs in ascending order of tokens is paired with position n - 1 - s. With an odd number the one in
/// the middle is paired with itself.
std::vector<std::size_t> partners_of(const std::vector<std::int64_t>& tokens) {
  std::vector<std::size_t> order(tokens.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tokens[a] < tokens[b]; });
  std::vector<std::size_t> partner(tokens.size());
  for (std::size_t s = 0; s < order.size(); ++s) {
    partner[order[s]] = order[order.size() - 1 - s];
  }
  return partner;
}

/// Takes whole sequences while each is less than what is left of `budget`. Empty sequences may be all that fits: they
/// have blocks but no tokens, and then nothing is sent.
void take_sequences(const std::vector<std::int64_t>& sequences, std::int64_t budget, PairChoice& choice) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (budget > sequences[i]) {
      budget -= sequences[i];
      choice.taken.push_back(i);
      choice.sends = choice.sends || sequences[i] > 0;
    }
  }
}

/// The blocks of the sequences that are taken, and as many behind those of the partner.
PePlan plan_pe(const PairChoice& choice, const std::vector<std::int64_t>& sequences, std::int64_t page,
               std::int64_t partner_used) {
  PePlan plan{static_cast<std::int64_t>(choice.partner), choice.sends ? kSend : kReceive, {}, {}};
  std::int64_t first = 0;
  std::size_t next = 0;
  for (const std::size_t taken : choice.taken) {
    for (; next < taken; ++next) {
      first += blocks_of(sequences[next], page);
    }
    for (std::int64_t i = 0; i < blocks_of(sequences[taken], page); ++i) {
      plan.source.push_back(first + i);
    }
  }
  plan.destination.resize(plan.source.size());
  std::iota(plan.destination.begin(), plan.destination.end(), partner_used);
  return plan;
}

}  // namespace

Result<void> check_geometry(const Geometry& geometry, std::size_t pes) {
  if (pes < 1 || geometry.blocks < 1 || geometry.blocks > kMostBlocks || geometry.page < 1 ||
      geometry.page > kMostTokensInPage) {
    return refuse(std::errc::invalid_argument, std::to_string(pes) + " PEs with caches of " +
                                                   std::to_string(geometry.blocks) + " blocks of " +
                                                   std::to_string(geometry.page) + " tokens");
  }
  return {};
}

tl::unexpected<Error> no_room(std::size_t pe, std::int64_t used, const Geometry& geometry, std::int64_t blocks,
                              std::size_t sender) {
  return refuse(std::errc::no_buffer_space, pe_name(pe) + " has " + std::to_string(used) + " of its " +
                                                std::to_string(geometry.blocks) +
                                                " blocks in use and no room for the " + std::to_string(blocks) +
                                                " that " + pe_name(sender) + " would send");
}

std::vector<PairChoice> choose_pairs(const Lengths& lengths) {
  std::vector<std::int64_t> tokens;
  for (const auto& sequences : lengths) {
    tokens.push_back(sum(sequences));
  }
  const std::int64_t mean = sum(tokens) / static_cast<std::int64_t>(tokens.size());
  const std::vector<std::size_t> partner = partners_of(tokens);
  std::vector<PairChoice> choices(lengths.size());
  for (std::size_t pe = 0; pe < choices.size(); ++pe) {
    choices[pe].partner = partner[pe];
    const std::int64_t above = tokens[pe] - mean;
    const std::int64_t below = mean - tokens[partner[pe]];
    if (above > 0 && below > 0) {
      take_sequences(lengths[pe], std::min({above, below, kMostMoved}), choices[pe]);
    }
  }
  return choices;
}

Result<PairPlan> plan_pairs(const Lengths& lengths, const Geometry& geometry) {
  const auto used = count_all_blocks(lengths, geometry);
  if (!used) {
    return tl::make_unexpected(used.error());
  }
  const auto choices = choose_pairs(lengths);
  PairPlan plan;
  for (std::size_t pe = 0; pe < lengths.size(); ++pe) {
    const std::size_t partner = choices[pe].partner;
    PePlan part = plan_pe(choices[pe], lengths[pe], geometry.page, (*used)[partner]);
    const auto moved = static_cast<std::int64_t>(part.source.size());
    if (choices[pe].sends && moved > geometry.blocks - (*used)[partner]) {
      return no_room(partner, (*used)[partner], geometry, moved, pe);
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
