// SPDX-License-Identifier: Apache-2.0
// Which PE sends which blocks where, so that all hold about the same number of tokens: a pure function of what each
// holds, so all PEs compute the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shmem/kv/move.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// One PE's caches: so many blocks, so many tokens in each.
struct Geometry {
  std::int64_t blocks;
  std::int64_t page;
};

/// The tokens of each sequence that a PE holds, for each PE. A PE's sequences lie in its cache one behind the other,
/// from block 0.
using Lengths = std::vector<std::vector<std::int64_t>>;

/// One PE's row of the pair table and its block tables, which count only if it sends.
struct PePlan {
  std::int64_t peer;
  std::int64_t operation;  // kSend or kReceive
  std::vector<std::int64_t> source, destination;
};
using PairPlan = std::vector<PePlan>;

/// The blocks of a sequence. There is always room for another token: a full page has an empty one behind it.
constexpr std::int64_t blocks_of(std::int64_t tokens, std::int64_t page) {
  return tokens / page + 1;
}

/// The blocks that a sequence's tokens take, as many as it must have.
constexpr std::int64_t pages_of(std::int64_t tokens, std::int64_t page) {
  return tokens / page + (tokens % page != 0 ? 1 : 0);
}

/// Error: no PEs, or caches that cannot be.
Result<void> check_geometry(const Geometry& geometry, std::size_t pes);

/// Error of a PE that would have to take `blocks` from another one.
tl::unexpected<Error> no_room(std::size_t pe, std::int64_t used, const Geometry& geometry, std::int64_t blocks,
                              std::size_t sender);

/// What one PE has to do with its partner.
struct PairChoice {
  std::size_t partner = 0;
  std::vector<std::size_t> taken{};  // of the PE's sequences, by their number there
  bool sends = false;                // else `taken` does not count
};

/// Whom plan_pairs() pairs, and what it has them send. REQUIRES: tokens that are not negative, their sum no overflow.
std::vector<PairChoice> choose_pairs(const Lengths& lengths);

/// The PE with the most tokens is paired with the one with the fewest, the second most with the second fewest, and so
/// on; equals in PE order. Of a pair whose PEs lie on either side of the mean, the upper one sends whole sequences, in
/// order, as long as neither passes the mean and fewer than 32 Ki tokens move; they go behind the partner's blocks.
///
/// Errors, which name the PE: lengths or geometry that cannot be, a PE that holds more blocks than its cache has, a
/// receiver without room.
Result<PairPlan> plan_pairs(const Lengths& lengths, const Geometry& geometry);

/// What the PEs that send do: tables of others are left out.
std::vector<Move> moves_of(const PairPlan& plan);

}  // namespace shmem::kv
