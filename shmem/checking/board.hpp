// SPDX-License-Identifier: Apache-2.0
// What a PE shows to the others with SHMEM_DEBUG: its last collective calls, and the PE it waits for. In its metadata
// area; all zero at first.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "shmem/layout/job.hpp"
#include "shmem/layout/sync_view.hpp"

namespace shmem {

/// The PEs that make a collective call together: a team, or an active set, which has no slot.
struct CallSet {
  int slot = 0;
  TeamMap map;

  friend bool operator==(const CallSet& a, const CallSet& b) {
    return a.slot == b.slot && a.map.start == b.map.start && a.map.stride == b.map.stride && a.map.size == b.map.size;
  }
};
constexpr int kActiveSet = -1;

/// A call with its arguments, in words. Written before its number and read after it. For a message it may be read
/// during a write; then the text is discarded.
class CallText {
 public:
  void store(const std::string& text);
  [[nodiscard]] std::string load() const;

 private:
  using Words = std::array<std::uint64_t, 32>;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_;
};

/// The calls that a PE has made with one set.
class alignas(64) CallEntry {
 public:
  /// 0 if the entry belongs to another set. Acquire: the text of the last call is visible.
  [[nodiscard]] std::uint64_t count_of(const CallSet& set) const;
  [[nodiscard]] CallSet set() const;
  [[nodiscard]] std::string text_of(std::uint64_t count) const { return text_[count % text_.size()].load(); }
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

  // By the PE itself.
  [[nodiscard]] bool is_free() const { return members_.load(std::memory_order_relaxed) == 0; }
  void use_for(const CallSet& set);
  void free() { members_.store(0, std::memory_order_release); }
  /// The number of the call. Sequentially consistent, as wake_parked requires.
  std::uint64_t enter(const std::string& text);

 private:
  std::atomic<std::uint64_t> members_;  // slot and start, 0: free
  std::atomic<std::uint64_t> shape_;    // stride and size
  std::atomic<std::uint64_t> count_;
  // By number: a member is at most one waiting call and one non-waiting call ahead of another.
  std::array<CallText, 4> text_;
};

/// A PE's part.
struct CallBoard {
  static constexpr std::size_t kMostSets = 1024;

  /// Odd: this PE waits in the call of `entry`. Changes with each call.
  alignas(64) std::atomic<std::uint64_t> turn;
  std::atomic<std::uint32_t> entry;
  std::atomic<std::int32_t> waits_for;  // a PE, + 1; 0: none yet
  /// 1: its threads may wait in several calls at once, which makes the words above meaningless.
  std::atomic<std::uint32_t> threads;
  /// PE 0's: a PE has found a problem and reports it.
  std::atomic<std::uint32_t> reported;
  std::atomic<std::uint32_t> used;  // entries from here on were never used
  std::array<CallEntry, kMostSets> entries;
};

/// After the words of kernels.
constexpr std::size_t kCallBoardOffset = std::size_t{24} << 20;
static_assert(kKernelSyncOffset + sizeof(KernelSync) <= kCallBoardOffset);
static_assert(kCallBoardOffset + sizeof(CallBoard) <= kMetadataSize - kNotesSize);

inline CallBoard& call_board(const Job& job, int pe) {
  return *reinterpret_cast<CallBoard*>(job.memory.metadata(pe) + kCallBoardOffset);
}

}  // namespace shmem
