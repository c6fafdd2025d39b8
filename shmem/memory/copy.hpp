// SPDX-License-Identifier: Apache-2.0
// Copies between the memories of PEs, and the choice between storing through the cache and past it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmem {

/// From this size on a copy may go past the cache.
///
/// Where the lines of a destination on another PE are in that PE's cache, a store through the cache first takes each
/// line away from there (7 to 28 ns per line, measured), which costs more than the copy itself. Streaming stores do not
/// wait for that, but must all have left the processor before the copy returns, and below some 16 KiB that costs more.
constexpr std::size_t kStreamingFrom = std::size_t{16} << 10;

/// Pieces of any size and alignment, copied in a row as if they were one: whether that goes through the cache is found
/// once for all, the next piece is fetched while one is copied, and there is one fence. Used by one thread.
///
/// It begins through the cache, and looks at the clock: lines that are in this processor's cache already, or in
/// nobody's, are stored there at twice the speed of streaming. It goes on past the cache when the stores take longer
/// than streaming would, and tries the cache again when it has copied twice as much.
class BatchCopy {
 public:
  /// No piece's source is any piece's destination. Done at the latest when finish() returns.
  void add(void* destination, const void* source, std::size_t size);

  /// Copies what is left. All pieces are then visible to whoever sees a release store that the caller makes
  /// afterwards; a release store alone does not order stores past the cache. Pieces may be added after it.
  void finish();

 private:
  friend void copy_bytes(void* destination, const void* source, std::size_t size);

  struct Piece {
    std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::size_t size = 0;
    [[nodiscard]] Piece without(std::size_t first) const { return {to + first, from + first, size - first}; }
  };
  void copy(const Piece& piece, const Piece& next);
  std::size_t copy_while_fast(Piece piece);
  void fence();

  Piece last_;                 // added and not yet copied
  std::size_t done_ = 0;       // bytes so far
  std::size_t to_stream_ = 0;  // bytes, until the cache is tried again
  std::size_t unseen_ = 0;     // bytes through the cache since the last look at the clock
  std::uint64_t looked_ = 0;   // when that was; 0: not yet
  int slow_ = 0;               // looks in a row that found the cache slow
  bool streamed_ = false;      // since the last fence
};

/// Copies `size` bytes; the areas do not overlap, any alignment. Visible to whoever sees a release store that the
/// caller makes afterwards. Thread-safe. A large copy is a BatchCopy of one piece.
void copy_bytes(void* destination, const void* source, std::size_t size);

/// As copy_bytes, with stores past the cache whatever the size, where the processor has them. A release store does not
/// order those: hence the fence at the end, before this returns.
void copy_streaming(void* destination, const void* source, std::size_t size);

}  // namespace shmem
