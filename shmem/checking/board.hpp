// SPDX-License-Identifier: Apache-2.0
// What a PE shows to the others with SHMEM_DEBUG: its last collective calls, and for whom it waits. In its metadata
// area; all zero at first.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "shmem/job.hpp"
#include "shmem/team/sync_view.hpp"

namespace shmem {

/// Who makes a collective call together: a team, or an active set, which has no slot.
struct CallSet {
  int slot = 0;
  TeamMap map;

  friend bool operator==(const CallSet& a, const CallSet& b) {
    return a.slot == b.slot && a.map.start == b.map.start && a.map.stride == b.map.stride && a.map.size == b.map.size;
  }
};
constexpr int kActiveSet = -1;

/// A call with its arguments, in words. Written before its number is, read after that; where it is only to be shown it
/// may be read while it is written, and then it is of no use.
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
  /// 0 where it is not those of `set`. Acquire: the text of the last one is visible.
  [[nodiscard]] std::uint64_t count_of(const CallSet& set) const;
  [[nodiscard]] CallSet set() const;
  [[nodiscard]] std::string text_of(std::uint64_t count) const { return text_[count % text_.size()].load(); }
  [[nodiscard]] std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

  // By the PE itself.
  [[nodiscard]] bool is_free() const { return who_.load(std::memory_order_relaxed) == 0; }
  void use_for(const CallSet& set);
  void free() { who_.store(0, std::memory_order_release); }
  /// The number of the call. Sequentially consistent, as wake_parked asks for.
  std::uint64_t enter(const std::string& text);

 private:
  std::atomic<std::uint64_t> who_;    // slot and start, 0: free
  std::atomic<std::uint64_t> which_;  // stride and size
  std::atomic<std::uint64_t> count_;
  // By number: a member is at most one call that waits, and one that does not, ahead of another.
  std::array<CallText, 4> text_;
};

/// A PE's part.
struct CallBoard {
  static constexpr std::size_t kMostSets = 1024;

  /// Odd: this PE waits in a call, that of `entry`. Changes with each call.
  alignas(64) std::atomic<std::uint64_t> turn;
  std::atomic<std::uint32_t> entry;
  std::atomic<std::int32_t> waits_for;  // a PE, + 1; 0: for nobody yet
  /// 1: its threads may wait in several calls at once, so that the words above mean nothing.
  std::atomic<std::uint32_t> threads;
  /// PE 0's: somebody has found something wrong, and says so.
  std::atomic<std::uint32_t> reported;
  std::atomic<std::uint32_t> used;  // entries behind this one have never been used
  std::array<CallEntry, kMostSets> entries;
};

/// Behind the words of kernels.
constexpr std::size_t kCallBoardOffset = std::size_t{24} << 20;
static_assert(kKernelSyncOffset + sizeof(KernelSync) <= kCallBoardOffset);
static_assert(kCallBoardOffset + sizeof(CallBoard) <= kMetadataSize - kNotesSize);

inline CallBoard& call_board(const Job& job, int pe) {
  return *reinterpret_cast<CallBoard*>(job.memory.metadata(pe) + kCallBoardOffset);
}

}  // namespace shmem
