// SPDX-License-Identifier: Apache-2.0
// The directory of another member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "base/mapping.hpp"
#include "kv/exchange/directory_layout.hpp"
#include "kv/exchange/directory_writer.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// A valid entry, copied out of shared memory. Its region, offset and size are the owner's claim: the memory of that
/// region decides (Memory::find).
struct Found {
  std::uint32_t slot = 0;
  std::uint64_t epoch = 0;
  BlockPlace place;
};

/// Reads memory that its owner may change at any time, to anything. No call waits, and each looks at a bounded part.
/// Thread-safe.
class DirectoryReader {
 public:
  /// Maps `file`, which the owner says to have `slots` slots. An Error if its size can change, or is too small, or if
  /// others than its owner can write it.
  static Result<DirectoryReader> open(int file, std::uint32_t slots);
  /// Reads `memory`, which outlives this. REQUIRES: directory_size(slots) bytes, aligned to 64.
  DirectoryReader(const std::byte* memory, std::uint32_t slots);

  enum class Outcome { kFound, kMissing, kOtherLayout, kCorrupt };
  /// `layout` 0: any.
  Outcome find(const Key& key, std::uint64_t layout, Found& found) const;

  /// The entry, if it is valid and has this epoch. Errors: ESTALE; EBADMSG it makes no sense.
  std::errc read(std::uint32_t slot, std::uint64_t epoch, BlockPlace& place) const;
  /// True if the entry has this epoch after all that this thread has read so far. REQUIRES: slot < slots().
  [[nodiscard]] bool still(std::uint32_t slot, std::uint64_t epoch) const {
    // Relaxed: after_reads() of the caller orders it after the copy.
    return entry(slot).epoch.load(std::memory_order_relaxed) == epoch;
  }

  /// Finds the next valid entry from `slot` on, and its key. Returns false if no valid entry follows.
  bool next(std::uint32_t slot, Found& found, Key& key) const;

  [[nodiscard]] std::uint32_t slots() const { return slots_; }
  [[nodiscard]] std::uint64_t blocks() const { return header().blocks.load(std::memory_order_relaxed); }
  [[nodiscard]] const Counters& counters() const { return header().counters; }
  [[nodiscard]] std::uint64_t bytes() const { return header().bytes.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] const DirectoryHeader& header() const { return *reinterpret_cast<const DirectoryHeader*>(memory_); }
  [[nodiscard]] const Entry& entry(std::uint32_t slot) const { return entries_[slot]; }
  [[nodiscard]] std::uint64_t word(std::uint64_t i) const {
    // Acquire: pairs with publish(): the entry is at least as new as the word.
    return index_[i & (words_ - 1)].load(std::memory_order_acquire);
  }
  [[nodiscard]] bool has_key(const Entry& entry, const Key& key) const;

  base::Mapping mapping_;
  const std::byte* memory_;
  std::uint32_t slots_;
  std::size_t words_;
  const std::atomic<std::uint64_t>* index_;
  const Entry* entries_;
};

}  // namespace shmem::exchange
