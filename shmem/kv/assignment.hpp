// SPDX-License-Identifier: Apache-2.0
// Which sequences go to which PEs, so that tokens are even.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "shmem/kv/block_index.hpp"
#include "shmem/kv/sequences.hpp"

namespace shmem::kv {

/// Moves sequences from PEs above the mean to PEs below it, and takes none of them past it: each token that moves
/// brings two PEs a token nearer to the mean, which is as much as a token can do. Longest first; of the PEs that a
/// sequence fits, to the one that has most of its blocks, and else to the one that it fills best. Where a gap is left
/// for which no sequence is short enough, two sequences go instead of one that is shorter than both together.
///
/// Then, if there is a tolerance, PEs that are still further above the mean than that also send to PEs which that takes
/// past the mean, by no more than the tolerance.
///
/// Numbers are tokens times PEs, so that the mean is a whole number. Used once.
class Assignment {
 public:
  /// `held` has the contents of the PEs below the mean.
  Assignment(std::span<const Sequence> sequences, const Holdings& holdings, const Planning& planning,
             const BlockIndex& held);

  /// The PE of each sequence.
  std::vector<std::int64_t> run() &&;

 private:
  /// What a PE below the mean has of a sequence.
  struct Shared {
    std::size_t there = 0;   // blocks that it has
    std::size_t coming = 0;  // blocks that sequences bring which go there as well
  };

  using Two = std::pair<std::size_t, std::size_t>;

  [[nodiscard]] std::int64_t weight(std::size_t sequence) const { return pes_ * sequences_[sequence].tokens; }
  [[nodiscard]] std::size_t pe_of(std::size_t sequence) const {
    return static_cast<std::size_t>(sequences_[sequence].pe);
  }
  [[nodiscard]] bool moved(std::size_t sequence) const { return to_[sequence] != sequences_[sequence].pe; }

  void list_candidates(const Holdings& holdings, const Planning& planning);
  /// How far below the mean a PE must be to get the sequence, when it may be taken `past` the mean by so much; nothing
  /// if the sequence stays.
  [[nodiscard]] std::optional<std::int64_t> least_gap(std::size_t sequence, std::int64_t past) const;
  void count_shared(std::size_t sequence, std::int64_t least);
  /// True if any PE that is as far below the mean as `least` has, or gets, the block.
  bool count_holders(std::uint64_t hash, std::int64_t least);
  /// True if the PE has room for what it does not have of the sequence.
  [[nodiscard]] bool has_room(std::size_t sequence, std::size_t pe) const;
  [[nodiscard]] std::optional<std::size_t> best_sharer(std::size_t sequence) const;
  [[nodiscard]] std::optional<std::size_t> best_fit(std::size_t sequence, std::int64_t least) const;
  /// Blocks of the sequence that the PE has.
  [[nodiscard]] std::int64_t held_by(std::size_t pe, std::size_t sequence) const;
  void move(std::size_t sequence, std::size_t pe);
  void take_back(std::size_t sequence);
  void add_tokens(std::size_t pe, std::int64_t weight);
  void send_what_fits(std::int64_t past);
  /// The two sequences that stay at the PE and weigh the most together, of those of least..most.
  [[nodiscard]] std::optional<Two> find_two(std::size_t pe, std::int64_t least, std::int64_t most) const;
  /// True if there is room for `two` in place of a sequence, and they do not have more blocks sent than they have more
  /// tokens, but for one that two sequences may waste: not where the receiver has much of the one.
  [[nodiscard]] bool pays(std::size_t sequence, const Two& two) const;
  bool send_two_for(std::size_t sequence);
  bool send_two_for_one();

  std::span<const Sequence> sequences_;
  const BlockIndex& held_;
  std::int64_t pes_;
  std::int64_t page_;
  std::int64_t tolerance_;                                // tokens times PEs
  std::vector<std::int64_t> above_;                       // [pe] the mean; negative below
  std::vector<std::int64_t> free_;                        // [pe] blocks that nobody has been promised
  std::set<std::pair<std::int64_t, std::size_t>> below_;  // {how far below, PE} of those that may receive
  std::vector<std::vector<std::size_t>> candidates_;      // [pe above the mean] those that may move, longest first
  std::vector<std::size_t> longest_first_;                // all of them
  std::vector<std::int64_t> to_;                          // [sequence]
  std::vector<std::int64_t> promised_;                    // [sequence] blocks, when it moves
  BlockIndex coming_;
  std::vector<Shared> shared_;        // [pe] of the sequence in hand
  std::vector<std::size_t> sharers_;  // PEs with something in shared_
};

}  // namespace shmem::kv
