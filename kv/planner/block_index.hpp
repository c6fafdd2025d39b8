// SPDX-License-Identifier: Apache-2.0
// Which PE has which contents in which block.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/hash.hpp"

namespace shmem::kv {

/// Finds blocks by the hash of their contents. Two chained hash tables over the same entries: by hash, and by hash and
/// PE. Its answers depend only on what was added in which order.
class BlockIndex {
 public:
  /// Fast for up to `expected` entries.
  explicit BlockIndex(std::size_t expected)
      : bits_(static_cast<int>(std::bit_width(std::bit_ceil(expected + 1)))),
        by_hash_(std::size_t{1} << bits_, kNone),
        by_both_(by_hash_) {}

  [[nodiscard]] std::optional<std::int64_t> find(std::uint64_t hash, std::int64_t pe) const {
    for (std::size_t i = by_both_[slot(hash, pe)]; i != kNone; i = entries_[i].next_of_both) {
      if (entries_[i].hash == hash && entries_[i].pe == pe) {
        return entries_[i].block;
      }
    }
    return std::nullopt;
  }

  /// Does nothing if the PE has these contents already.
  void add(std::uint64_t hash, std::int64_t pe, std::int64_t block) {
    if (find(hash, pe)) {
      return;
    }
    std::size_t& of_hash = by_hash_[slot(hash, 0)];
    std::size_t& of_both = by_both_[slot(hash, pe)];
    entries_.push_back({hash, pe, block, of_hash, of_both});
    of_hash = of_both = entries_.size() - 1;
  }

  /// Calls visit(PE) for the PEs that have these contents, the last added first, until it returns false.
  template <typename Visit>
  void for_each_holder(std::uint64_t hash, Visit visit) const {
    for (std::size_t i = by_hash_[slot(hash, 0)]; i != kNone; i = entries_[i].next_of_hash) {
      if (entries_[i].hash == hash && !visit(entries_[i].pe)) {
        return;
      }
    }
  }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;

  struct Entry {
    std::uint64_t hash;
    std::int64_t pe, block;
    std::size_t next_of_hash, next_of_both;
  };

  /// Fibonacci hashing.
  [[nodiscard]] std::size_t slot(std::uint64_t hash, std::int64_t pe) const {
    const std::uint64_t both = hash ^ static_cast<std::uint64_t>(pe) * base::kGoldenRatio;
    return static_cast<std::size_t>(both * base::kGoldenRatio >> (64 - bits_));
  }

  int bits_;
  std::vector<std::size_t> by_hash_, by_both_;
  std::vector<Entry> entries_;
};

}  // namespace shmem::kv
