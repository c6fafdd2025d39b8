// SPDX-License-Identifier: Apache-2.0
// Copies between the memories of PEs, and the choice between storing through the cache and past it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmem {

/// From this size on a copy may go past the cache.
///
/// If the lines of a destination on another PE are in that PE's cache, a store through the cache first takes each line
/// away from there (7 to 28 ns per line, measured), which costs more than the copy itself. Streaming stores avoid that,
/// but must all have left the processor before the copy returns, and to find that out takes time: below about 32 KiB
/// that costs more.
constexpr std::size_t kStreamingFrom = std::size_t{32} << 10;

/// Copies pieces of any size and alignment in a row as if they were one: the choice of cache or streaming is made once
/// for all, the next piece is prefetched while one is copied, and there is one fence. Used by one thread.
///
/// It begins through the cache and measures: stores to lines in this processor's cache, or in no cache, are twice as
/// fast as streaming. When stores take longer than streaming would, it streams, and tries the cache again after twice
/// as many bytes.
class BatchCopy {
 public:
  /// No source overlaps a destination. Copied at the latest when finish() returns.
  void add(void* destination, const void* source, std::size_t size);

  /// Copies the rest. All pieces are then visible to a thread that sees a later release store of the caller; a release
  /// store alone does not order stores past the cache. More pieces may be added afterwards.
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
  std::size_t to_stream_ = 0;  // bytes until the cache is tried again
  std::size_t sample_ = 4096;  // bytes until the next measurement
  std::size_t unseen_ = 0;     // of which so many have been copied
  std::uint64_t looked_ = 0;   // time of that measurement; 0: none yet
  int slow_ = 0;               // measurements in a row that found the cache slow
  bool streamed_ = false;      // since the last fence
};

/// Copies `size` bytes; no overlap, any alignment. Visible to a thread that sees a later release store of the caller.
/// Thread-safe. A large copy is a BatchCopy of one piece.
void copy_bytes(void* destination, const void* source, std::size_t size);

/// As copy_bytes, with stores past the cache for any size, if the processor has them. A release store does not order
/// those: hence the fence before this returns.
void copy_streaming(void* destination, const void* source, std::size_t size);

}  // namespace shmem
