// SPDX-License-Identifier: Apache-2.0
// Which sequences go to which PEs, so that all hold about the same number of tokens. Pure functions of what the PEs
// hold, so that all PEs compute the same.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kv/planner/block_index.hpp"
#include "kv/planner/sequences.hpp"

namespace shmem::kv {

/// The tokens of each sequence of each PE.
using Lengths = std::vector<std::vector<std::int64_t>>;

/// What one PE does with its partner.
struct PairChoice {
  std::size_t partner = 0;
  std::vector<std::size_t> taken{};  // numbers of its sequences
  bool sends = false;                // if not, `taken` does not count
};

/// Ascend SHMEM's plan. The PE with the most tokens is paired with the one with the fewest, the second most with the
/// second fewest, and so on; equals in PE order. If the PEs of a pair are on either side of the mean, the upper one
/// sends whole sequences, in order, as long as neither passes the mean and fewer than 32 Ki tokens move. REQUIRES:
/// tokens that are not negative, and whose sum does not overflow.
std::vector<PairChoice> choose_pairs(const Lengths& lengths);

/// Moves sequences from PEs above the mean to PEs below it, and takes none of them past it: each token that moves
/// brings two PEs a token nearer to the mean, which is the best a token can do. Longest first. Of the PEs that a
/// sequence fits, it goes to the one that has most of its blocks, otherwise to the one that it fills best. If no
/// sequence is short enough for a remaining gap, two sequences go instead of one that is shorter than both together.
///
/// With a tolerance, PEs that are still further above the mean than the tolerance then also send to PEs that this takes
/// past the mean, but by no more than the tolerance.
///
/// With weights, the part of a PE takes the place of the mean: all tokens, in proportion to its weight. Numbers are
/// tokens times the sum of the weights (the number of PEs if these are equal), so that parts are whole numbers. Used
/// once.
class Assignment {
 public:
  /// `held` contains the blocks of the PEs below the mean.
  Assignment(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning,
             const BlockIndex& held);

  /// The PE of each sequence.
  std::vector<std::int64_t> run() &&;

 private:
  /// The blocks of a sequence that a PE below the mean has or gets.
  struct Shared {
    std::size_t held = 0;
    std::size_t coming = 0;  // with other sequences
  };

  using Two = std::pair<std::size_t, std::size_t>;

  [[nodiscard]] std::int64_t weight(std::size_t sequence) const { return unit_ * sequences_[sequence].tokens; }
  [[nodiscard]] std::size_t pe_of(std::size_t sequence) const {
    return static_cast<std::size_t>(sequences_[sequence].pe);
  }
  [[nodiscard]] bool moved(std::size_t sequence) const { return to_[sequence] != sequences_[sequence].pe; }

  void list_candidates(const Holdings& holdings, const Planning& planning);
  /// How far below the mean a PE must be to get the sequence, if it may exceed the mean by `past`; nothing if the
  /// sequence stays.
  [[nodiscard]] std::optional<std::int64_t> least_gap(std::size_t sequence, std::int64_t past) const;
  void count_shared(std::size_t sequence, std::int64_t least);
  /// True if any PE at least `least` below the mean has or gets the block.
  bool count_holders(std::uint64_t hash, std::int64_t least);
  /// True if the PE has room for the blocks of the sequence that it does not have.
  [[nodiscard]] bool has_room(std::size_t sequence, std::size_t pe) const;
  [[nodiscard]] std::optional<std::size_t> best_sharer(std::size_t sequence) const;
  [[nodiscard]] std::optional<std::size_t> best_fit(std::size_t sequence, std::int64_t least) const;
  /// The number of blocks of the sequence that the PE has.
  [[nodiscard]] std::int64_t held_by(std::size_t pe, std::size_t sequence) const;
  void move(std::size_t sequence, std::size_t pe);
  void take_back(std::size_t sequence);
  void add_tokens(std::size_t pe, std::int64_t weight);
  void send_what_fits(std::int64_t past);
  /// The two sequences that stay at the PE with the largest sum of weights in least..most.
  [[nodiscard]] std::optional<Two> find_two(std::size_t pe, std::int64_t least, std::int64_t most) const;
  /// True if there is room for `two` in place of the sequence, and sending them costs no more additional blocks than
  /// their additional tokens fill, plus one. False if the receiver has much of the sequence.
  [[nodiscard]] bool pays(std::size_t sequence, const Two& two) const;
  bool send_two_for(std::size_t sequence);
  bool send_two_for_one();

  std::span<const Sequence> sequences_;
  const BlockIndex& held_;
  std::int64_t unit_;
  std::int64_t page_;
  std::int64_t tolerance_;                                // tokens times the unit
  std::vector<std::int64_t> above_;                       // [pe] its part; negative below
  std::vector<std::int64_t> free_;                        // [pe] blocks not yet promised to a sequence
  std::set<std::pair<std::int64_t, std::size_t>> below_;  // {how far below, PE}: possible receivers
  std::vector<std::vector<std::size_t>> candidates_;      // [pe above the mean] sequences that may move, longest first
  std::vector<std::size_t> longest_first_;                // all of them
  std::vector<std::int64_t> to_;                          // [sequence]
  std::vector<std::int64_t> promised_;                    // [sequence] blocks, if it moves
  BlockIndex coming_;
  std::vector<Shared> shared_;        // [pe] for the current sequence
  std::vector<std::size_t> sharers_;  // PEs with an entry in shared_
};

}  // namespace shmem::kv
