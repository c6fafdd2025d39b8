// SPDX-License-Identifier: Apache-2.0
// Sets of a job's PEs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shmem {

/// Thread-safe, but for clear(). Relaxed throughout: a thread that orders or completes another thread's operations
/// synchronises with that thread by itself, as OpenSHMEM demands of programs.
class PeSet {
 public:
  /// Has room for no PE.
  PeSet() = default;
  explicit PeSet(int pes) : words_((static_cast<std::size_t>(pes) + kBits - 1) / kBits) {}

  /// REQUIRES: 0 <= pe < pes.
  void add(int pe) {
    auto& word = words_[static_cast<std::size_t>(pe) / kBits];
    if ((word.load(std::memory_order_relaxed) & bit(pe)) == 0) {
      word.fetch_or(bit(pe), std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool contains(int pe) const {
    const auto index = static_cast<std::size_t>(pe) / kBits;
    return index < words_.size() && (words_[index].load(std::memory_order_relaxed) & bit(pe)) != 0;
  }
  /// REQUIRES: no other thread uses the set.
  void clear() {
    for (auto& word : words_) {
      word.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::size_t kBits = 64;
  static std::uint64_t bit(int pe) { return std::uint64_t{1} << (static_cast<std::size_t>(pe) % kBits); }

  std::vector<std::atomic<std::uint64_t>> words_;
};

/// All PEs, one, or those of a set, which outlives this.
class PeChoice {
 public:
  PeChoice() = default;
  explicit PeChoice(int pe) : one_(pe) {}
  explicit PeChoice(const PeSet& set) : set_(&set) {}

  [[nodiscard]] bool contains(int pe) const {
    return set_ != nullptr ? set_->contains(pe) : one_ == kAll || one_ == pe;
  }

 private:
  static constexpr int kAll = -1;

  int one_ = kAll;
  const PeSet* set_ = nullptr;
};

}  // namespace shmem
