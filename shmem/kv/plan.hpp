// SPDX-License-Identifier: Apache-2.0
// Which blocks go where in one shuffle: checked, sorted, each move once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shmem/kv/move.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// As SHMEMX_KV_COPY and SHMEMX_KV_MOVE: what becomes of source blocks that are nobody's destination.
enum class Mode { kCopy, kMove };

/// All moves happen at once: destinations get what their sources held before. A move whose destination is the source of
/// another one therefore waits until that has been read, and is `staged`: in the meantime its block lies in memory of
/// the sender's. That is right for chains, cycles and swaps alike. Plain data; any thread may read it.
class MovePlan {
 public:
  /// Errors name the move: a destination with two sources, a source with two destinations if it is to be cleared, or a
  /// negative number. A move named twice is one, and one of a block to itself is
  /// none, though no other may go there.
  static Result<MovePlan> create(std::span<const Move> moves, Mode mode);

  /// By source PE, destination PE and source block: of adjacent blocks the moves are adjacent.
  [[nodiscard]] std::span<const Move> moves() const { return moves_; }
  [[nodiscard]] Mode mode() const { return mode_; }
  /// The same for the same moves and mode, in whatever order they were given, and for others as good as never.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  /// How many PEs send or receive.
  [[nodiscard]] int pes() const { return pes_; }

  /// Error: a PE or a block that is not there.
  [[nodiscard]] Result<void> check(int pes, std::size_t blocks) const;

  // What PE `pe` sends: at once, and staged.
  [[nodiscard]] std::vector<Move> direct(int pe) const;
  [[nodiscard]] std::vector<Move> staged(int pe) const;
  /// Those that send to `pe` at once.
  [[nodiscard]] std::vector<int> sources_of(int pe) const;
  /// Of the PE that stages most.
  [[nodiscard]] std::size_t most_staged() const { return most_staged_; }
  /// The blocks that `pe` clears in the end.
  [[nodiscard]] std::vector<std::int64_t> cleared(int pe) const;
  /// Any PE clears any.
  [[nodiscard]] bool clears() const { return !cleared_.empty(); }

 private:
  struct Block {
    std::int64_t pe, index;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
    friend auto operator<=>(const Block&, const Block&) = default;
  };
  static Block source_of(const Move& move) { return {move.source_pe, move.source_block}; }
  static Block destination_of(const Move& move) { return {move.destination_pe, move.destination_block}; }

  void find_staged(const std::vector<Block>& sources);
  [[nodiscard]] std::vector<Move> select(int pe, bool staged) const;

  Mode mode_ = Mode::kCopy;
  std::vector<Move> moves_;
  std::vector<bool> staged_;    // by move
  std::vector<Block> cleared_;  // sorted
  std::size_t most_staged_ = 0;
  int pes_ = 0;
  std::int64_t last_pe_ = -1, last_block_ = -1;  // the largest numbers
  std::uint64_t digest_ = 0;
};

}  // namespace shmem::kv
