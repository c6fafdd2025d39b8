// SPDX-License-Identifier: Apache-2.0
// The sequences that PEs hold: the input of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/operator/plan.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// One PE's cache.
struct Geometry {
  std::int64_t blocks = 0;
  std::int64_t page = 0;  // tokens of a block
};

/// The blocks that tokens fill.
constexpr std::int64_t pages_of(std::int64_t tokens, std::int64_t page) {
  return tokens / page + (tokens % page != 0 ? 1 : 0);
}

/// A view of a sequence, whose tables are the caller's.
struct Sequence {
  std::int64_t pe;
  std::int64_t tokens;
  std::span<const std::int64_t> blocks;     // its block table: its place in the PE's cache, in order
  std::span<const std::uint64_t> hashes{};  // of the first blocks: equal numbers are equal contents
};

enum class Planner { kPair, kBalanced };

struct Planning {
  Planner planner = Planner::kBalanced;
  Mode mode = Mode::kCopy;
  std::int64_t pes = 0;
  Geometry geometry{};
  double tolerance = 0;  // a share of the mean
  // Balanced only. Without numbers all PEs are equal.
  std::vector<std::int64_t> weights{};  // of each PE: its part of the tokens is in proportion to it
  std::vector<std::int64_t> room{};     // of each PE: the blocks that it can take; else its free blocks
};

/// Plans compute with tokens times Holdings::unit().
constexpr std::int64_t kMostTokensTimesUnit = std::int64_t{1} << 61;

/// What the PEs hold before a plan.
class Holdings {
 public:
  /// Checks everything that plans rely on. Errors, which name sequence and PE: no sequences, an invalid number of PEs,
  /// an invalid cache, a PE out of range, tokens that are negative or more than the block table has room for, a block
  /// out of range, more hashes than blocks, a block that is named twice (by one sequence or by two of one PE) without
  /// the same hash each time.
  static Result<Holdings> create(std::span<const Sequence> sequences, const Planning& planning);

  /// Numbers of the PE's sequences, ascending.
  [[nodiscard]] const std::vector<std::size_t>& sequences_of(std::size_t pe) const { return by_pe_[pe]; }
  [[nodiscard]] std::int64_t tokens(std::size_t pe) const { return tokens_[pe]; }
  [[nodiscard]] std::int64_t all_tokens() const { return all_tokens_; }
  /// The sum of the weights: the number of PEs if these are equal. Plans compute with tokens times this, so that the
  /// part of each PE is a whole number.
  [[nodiscard]] std::int64_t unit() const { return unit_; }
  /// How far the tokens of the PE are above its part of all, times unit(). Negative below.
  [[nodiscard]] std::int64_t above(std::size_t pe) const {
    return unit_ * tokens_[pe] - (weights_.empty() ? 1 : weights_[pe]) * all_tokens_;
  }
  /// The blocks in use, each once, ascending.
  [[nodiscard]] const std::vector<std::int64_t>& used(std::size_t pe) const { return used_[pe]; }
  /// A block of the sequence is named again, by the same sequence or by another one of its PE.
  [[nodiscard]] bool shares(std::size_t sequence) const { return shares_[sequence]; }

 private:
  struct Named;

  Holdings(std::size_t sequences, const Planning& planning);
  Result<void> take_blocks(std::span<const Sequence> sequences, std::size_t pe, std::vector<Named>& named);

  std::vector<std::vector<std::size_t>> by_pe_;
  std::vector<std::int64_t> tokens_;
  std::int64_t all_tokens_ = 0;
  std::vector<std::int64_t> weights_;
  std::int64_t unit_;
  std::vector<std::vector<std::int64_t>> used_;
  std::vector<bool> shares_;
};

/// The number of blocks, from the first one of the table, that contain something.
std::size_t filled_blocks(const Sequence& sequence, std::int64_t page);

}  // namespace shmem::kv
