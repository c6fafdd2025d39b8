// SPDX-License-Identifier: Apache-2.0
// Which PE sends which blocks where, so that all hold about the same number of tokens: a pure function of what each
// holds, so all PEs compute the same plan.
#pragma once

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
