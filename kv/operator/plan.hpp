// SPDX-License-Identifier: Apache-2.0
// Which blocks go where in one shuffle: checked, sorted, each move once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shmem/result.hpp"
#include "shmemx_kv.h"

inline bool operator==(const shmemx_kv_move_t& a, const shmemx_kv_move_t& b) {
  return a.src_pe == b.src_pe && a.src_block == b.src_block && a.dst_pe == b.dst_pe && a.dst_block == b.dst_block;
}

namespace shmem::kv {

using Move = shmemx_kv_move_t;

/// SHMEMX_KV_COPY and SHMEMX_KV_MOVE: what becomes of source blocks that are not a destination.
enum class Mode { kCopy, kMove };

/// Equal for equal data, and almost certainly different for different data: tells whether PEs have the same.
class Digest {
 public:
  void add(const void* data, std::size_t size);
  void add(std::int64_t number) { add(&number, sizeof number); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// All moves happen at once: destinations get what their sources held before. A move is immediate, or staged if its
/// destination is the source of another move: until that source has been read, the block waits in memory of the sender.
/// That works for chains, cycles and swaps alike. Plain data; any thread may read it.
class MovePlan {
 public:
  /// Errors name the move: a destination with two sources, a source with two destinations if it is to be cleared, a
  /// negative number. Repeated moves are dropped, and so are moves of a block to itself; these still count as a second
  /// source of their destination.
  static Result<MovePlan> create(std::span<const Move> moves, Mode mode);

  /// By source PE, destination PE and source block, so that moves of adjacent blocks are adjacent.
  [[nodiscard]] std::span<const Move> moves() const { return moves_; }
  [[nodiscard]] Mode mode() const { return mode_; }
  /// Of moves and mode, independent of the order in which they were given.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

  /// The number of PEs that send or receive.
  [[nodiscard]] int pes() const { return pes_; }

  /// Error: a PE or a block out of range.
  [[nodiscard]] Result<void> check(int pes, std::size_t blocks) const;

  /// The number of blocks that `pe` sends to other PEs.
  [[nodiscard]] std::size_t sent_by(int pe) const;
  // What `pe` sends.
  [[nodiscard]] std::vector<Move> immediate(int pe) const;
  [[nodiscard]] std::vector<Move> staged(int pe) const;
  /// The PEs with immediate moves to `pe`.
  [[nodiscard]] std::vector<int> sources_of(int pe) const;
  /// The staged moves of the PE that has most of them.
  [[nodiscard]] std::size_t most_staged() const { return most_staged_; }
  /// The blocks that `pe` clears at the end.
  [[nodiscard]] std::vector<std::int64_t> cleared(int pe) const;
  /// Some PE clears a block.
  [[nodiscard]] bool clears() const { return !cleared_.empty(); }

 private:
  struct Block {
    std::int64_t pe, index;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in it
    friend auto operator<=>(const Block&, const Block&) = default;
  };
  static Block source_of(const Move& move) { return {move.src_pe, move.src_block}; }
  static Block destination_of(const Move& move) { return {move.dst_pe, move.dst_block}; }

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
