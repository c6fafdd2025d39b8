// SPDX-License-Identifier: Apache-2.0
// A member's directory, as its memfd holds it: a header, an index by hash, and the entries. Its owner alone can write
// it. A reader trusts nothing of it: it reads each number once, checks it, and bounds each loop by constants.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "kv/exchange/counters.hpp"
#include "kv/exchange/key.hpp"

namespace shmem::exchange {

constexpr std::uint32_t kMostSlots = std::uint32_t{1} << 24;

/// Counters for people; nothing depends on them.
struct DirectoryHeader {
  std::atomic<std::uint64_t> blocks;
  std::atomic<std::uint64_t> bytes;
  Counters counters;
};

/// Words of the index: an entry is at one of the kWindow words from the place that its hash says. All words have been
/// empty once; the first that still is ends a search. Otherwise: the upper half of the hash, and the entry's slot.
constexpr std::uint64_t kEmpty = 0;
constexpr std::uint64_t kRemoved = 1;
constexpr std::uint32_t kFirstSlot = 2;  // of slot 0
constexpr std::size_t kWindow = 128;

constexpr std::uint64_t index_word(std::uint64_t hash, std::uint32_t slot) {
  return (hash & 0xffff'ffff'0000'0000U) | (slot + kFirstSlot);
}
constexpr bool has_tag(std::uint64_t word, std::uint64_t hash) {
  return word >> 32 == hash >> 32;
}

/// `epoch` grows by one whenever the entry begins or ceases to be valid. Even and not 0: valid, and nothing else of it,
/// nor of the block, changes before `epoch` does.
struct alignas(64) Entry {
  std::atomic<std::uint64_t> epoch;
  std::atomic<std::uint64_t> hash;
  std::atomic<std::uint64_t> region_and_key_bytes;  // upper and lower half
  std::atomic<std::uint64_t> offset;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> layout;
  std::array<std::atomic<std::uint64_t>, 2> unused;
  std::array<std::atomic<std::uint64_t>, kKeyWords> key;
};
static_assert(sizeof(Entry) == 192);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

constexpr bool is_valid(std::uint64_t epoch) {
  return epoch != 0 && epoch % 2 == 0;
}

constexpr std::size_t kIndexOffset = 4096;
static_assert(sizeof(DirectoryHeader) <= kIndexOffset);

/// A power of two: half of the index, or more, stays empty.
constexpr std::size_t index_words(std::uint32_t slots) {
  return std::bit_ceil(std::size_t{2} * slots);
}
constexpr std::size_t entries_offset(std::uint32_t slots) {
  return kIndexOffset + (index_words(slots) * sizeof(std::uint64_t) + 63) / 64 * 64;
}
constexpr std::size_t directory_size(std::uint32_t slots) {
  return (entries_offset(slots) + slots * sizeof(Entry) + 4095) / 4096 * 4096;
}

}  // namespace shmem::exchange
