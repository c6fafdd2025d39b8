// SPDX-License-Identifier: Apache-2.0
// What a reader is reading (leases), and has read lately (use), in memory that only the reader and the owner of the
// blocks have.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "base/memfd.hpp"
#include "shmem/result.hpp"

namespace shmem::exchange {

/// Words for pulls, in addition to those for leases that a program holds: a pull never lacks one for long.
constexpr std::uint32_t kPullWords = 64;
constexpr std::uint32_t kMostLeases = 4096;

/// A word is 0, or the slot + 1, and the time at which the lease ends: milliseconds of the steady clock modulo 2^32.
using LeaseWord = std::atomic<std::uint64_t>;

/// The kernel's monotonic clock, which is the same for all processes of the node.
inline std::uint32_t lease_clock(std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now()) {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
}

constexpr std::uint64_t lease_of(std::uint32_t slot, std::uint32_t end) {
  return std::uint64_t{end} << 32 | (slot + 1);
}
constexpr bool is_lease_of(std::uint64_t word, std::uint32_t slot, std::uint32_t now) {
  return static_cast<std::uint32_t>(word) == slot + 1 &&
         static_cast<std::int32_t>(static_cast<std::uint32_t>(word >> 32) - now) > 0;
}

/// After those words, if the owner evicts blocks by their use: a bit for each slot of its directory, which the reader
/// sets when it finds or pulls the block, and the owner clears when it has seen it.
using UseWord = std::atomic<std::uint64_t>;
constexpr std::size_t use_words(std::uint32_t slots) {
  return (std::size_t{slots} + 63) / 64;
}
constexpr std::uint64_t use_bit(std::uint32_t slot) {
  return std::uint64_t{1} << slot % 64;
}

/// `slots` 0: without use.
inline std::size_t lease_bytes(std::uint32_t quota, std::uint32_t slots = 0) {
  return (quota + kPullWords) * sizeof(LeaseWord) + use_words(slots) * sizeof(UseWord);
}

/// The words of one reader, as the owner of the blocks sees them.
class LeaseBoard {
 public:
  /// `slots`: of use; 0: none.
  static Result<LeaseBoard> create(std::uint32_t quota, std::uint32_t slots = 0) {
    auto file = base::create_memfd("shmem-exchange-leases", lease_bytes(quota, slots));
    if (!file) {
      return file.error();
    }
    auto memory = base::Mapping::share(file->get(), lease_bytes(quota, slots));
    if (!memory) {
      return memory.error();
    }
    LeaseBoard board;
    board.file_ = *std::move(file);
    board.memory_ = *std::move(memory);
    board.words_ = {reinterpret_cast<LeaseWord*>(board.memory_.data()), quota + kPullWords};
    board.used_ = {reinterpret_cast<UseWord*>(board.memory_.data() + lease_bytes(quota)), use_words(slots)};
    return board;
  }

  /// For the reader. Closed by handed_over().
  [[nodiscard]] int file() const { return file_.get(); }
  void handed_over() { file_.reset(); }

  [[nodiscard]] bool has(std::uint32_t slot, std::uint32_t now) const {
    return std::any_of(words_.begin(), words_.end(), [&](const LeaseWord& word) {
      // Acquire: the reader has read all that it will, if it has cleared the word.
      return is_lease_of(word.load(std::memory_order_acquire), slot, now);
    });
  }
  /// The reader has used the block in the slot since the last call. Relaxed: it only says which block to evict.
  [[nodiscard]] bool take_use(std::uint32_t slot) const {
    const std::size_t word = slot / 64;
    return word < used_.size() && (used_[word].load(std::memory_order_relaxed) & use_bit(slot)) != 0 &&
           (used_[word].fetch_and(~use_bit(slot), std::memory_order_relaxed) & use_bit(slot)) != 0;
  }
  /// Adds the slots below `end` of which that is so to `slots`, up to `most` in all; the rest at a later call.
  void take_used(std::uint32_t end, std::size_t most, std::vector<std::uint32_t>& slots) {
    const std::size_t words = std::min(use_words(end), used_.size());
    for (std::size_t i = 0; i < words && slots.size() < most; ++i) {
      next_ = next_ + 1 < words ? next_ + 1 : 0;
      // Relaxed: as in take_use().
      std::uint64_t bits = used_[next_].load(std::memory_order_relaxed);
      bits = bits != 0 ? used_[next_].exchange(0, std::memory_order_relaxed) : 0;
      for (; bits != 0; bits &= bits - 1) {
        slots.push_back(static_cast<std::uint32_t>(next_ * 64 + static_cast<std::size_t>(std::countr_zero(bits))));
      }
    }
  }

 private:
  base::UniqueFd file_;
  base::Mapping memory_;
  std::span<const LeaseWord> words_;
  std::span<UseWord> used_;
  std::size_t next_ = 0;  // where take_used() goes on
};

/// The same words, as the reader sees them. Thread-safe.
class Leases {
 public:
  /// Those that calls of the program hold, and those of pulls that are under way.
  enum class Use { kHeld, kPull };

  /// `slots`: of use; 0: none.
  Leases(base::Mapping memory, std::uint32_t quota, std::uint32_t slots = 0)
      : memory_(std::move(memory)),
        words_(reinterpret_cast<LeaseWord*>(memory_.data()), quota + kPullWords),
        used_(reinterpret_cast<UseWord*>(memory_.data() + lease_bytes(quota)), use_words(slots)),
        slots_(quota) {
    for (std::uint32_t i = 0; i < words_.size(); ++i) {
      (i < quota ? held_ : pull_).push_back(i);
    }
  }

  /// Fills `words` with as many as there are, up to its size. Returns their number.
  std::size_t take(Use use, std::span<std::uint32_t> words) {
    const std::lock_guard lock(mutex_);
    auto& free = of(use);
    const std::size_t count = std::min(words.size(), free.size());
    std::copy(free.end() - static_cast<std::ptrdiff_t>(count), free.end(), words.begin());
    free.resize(free.size() - count);
    return count;
  }
  /// REQUIRES: they were taken for this use.
  void give(Use use, std::span<const std::uint32_t> words) {
    for (const std::uint32_t i : words) {
      // Release: what was read under the lease has been read before its owner sees this.
      words_[i].store(0, std::memory_order_release);
    }
    const std::lock_guard lock(mutex_);
    of(use).insert(of(use).end(), words.begin(), words.end());
  }
  /// True if word `i` came of hold() for this slot, and is now the caller's to give: at most once.
  bool end_lease(std::uint32_t i, std::uint32_t slot) {
    const std::lock_guard lock(mutex_);
    // The caller may pass anything, and the owner of the blocks may have written anything into the words.
    if (i >= slots_.size() || slots_[i] != slot + 1) {
      return false;
    }
    slots_[i] = 0;
    return true;
  }
  /// Takes one for a lease that the program holds.
  std::optional<std::uint32_t> hold(std::uint32_t slot) {
    std::uint32_t word = 0;
    if (take(Use::kHeld, {&word, 1}) == 0) {
      return std::nullopt;
    }
    const std::lock_guard lock(mutex_);
    slots_[word] = slot + 1;
    return word;
  }

  /// Visible to the owner after quiet().
  void set(std::uint32_t i, std::uint32_t slot, std::uint32_t end) {
    words_[i].store(lease_of(slot, end), std::memory_order_relaxed);
  }

  /// Tells the owner, if it wants to know, that this reader uses the block. Relaxed: LeaseBoard::take_use().
  void use(std::uint32_t slot) const {
    const std::size_t word = slot / 64;
    if (word < used_.size() && (used_[word].load(std::memory_order_relaxed) & use_bit(slot)) == 0) {
      used_[word].fetch_or(use_bit(slot), std::memory_order_relaxed);
    }
  }

 private:
  std::vector<std::uint32_t>& of(Use use) { return use == Use::kHeld ? held_ : pull_; }

  base::Mapping memory_;
  std::span<LeaseWord> words_;
  std::span<UseWord> used_;
  std::mutex mutex_;
  std::vector<std::uint32_t> held_, pull_;  // free
  std::vector<std::uint32_t> slots_;        // + 1, by held word; 0: free
};

}  // namespace shmem::exchange
