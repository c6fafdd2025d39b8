// SPDX-License-Identifier: Apache-2.0
// A PE's collective call on the symmetric heap, visible to the other PEs.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>

namespace shmem {

enum class HeapRoutine : std::uint32_t { kNone, kMalloc, kMallocWithHints, kCalloc, kAlign, kRealloc, kFree };

/// What the pointer argument is.
enum class HeapPointer : std::uint32_t {
  kNone,     // the routine takes none
  kNull,     // allowed
  kLive,     // a live block begins there
  kNotLive,  // in the heap, but no live block begins there
  kForeign,  // not in the heap
};

struct HeapCall {
  std::uint64_t number = 0;    // of this PE's calls on the heap, from 1
  std::uint64_t barriers = 0;  // of the world, that this PE had made before
  HeapRoutine routine = HeapRoutine::kNone;
  HeapPointer pointer = HeapPointer::kNone;
  std::uint64_t address = 0;  // kForeign: the pointer itself; in the heap: the offset
  std::uint64_t count = 1;    // kCalloc
  std::uint64_t size = 0;
  std::uint64_t alignment = 0;  // kAlign
  std::uint64_t hints = 0;      // kMallocWithHints

  friend bool operator==(const HeapCall&, const HeapCall&) = default;
};

/// "shmem_align(4096, 100)", "shmem_free(offset 64)": the same text for the same arguments.
std::string to_string(const HeapCall& call);

/// Two different calls have equal digests once in 2^64. Not 0.
std::uint64_t digest_of(const HeapCall& call);

/// A HeapCall in shared memory. Its owner writes it before a barrier, and the others read it after that. PEs in another
/// barrier may read it during a write; then it only serves to report that mismatch.
class alignas(64) SharedHeapCall {
 public:
  void store(const HeapCall& call);
  [[nodiscard]] HeapCall load() const;

 private:
  using Words = std::array<std::uint64_t, sizeof(HeapCall) / sizeof(std::uint64_t)>;
  std::array<std::atomic<std::uint64_t>, std::tuple_size_v<Words>> words_;
};

/// Shows whether all PEs make the same call, without a PE that reads all the others' calls. All zero before the first
/// entry.
class alignas(64) HeapVote {
 public:
  /// Before the barrier of the call.
  void enter(const HeapCall& call);
  /// After it: all of `pes` PEs have entered, with equal calls. Two different calls have equal digests once in 2^64.
  [[nodiscard]] bool unanimous(int pes) const;
  void clear();

 private:
  std::atomic<std::uint64_t> digest_;  // of the first call; 0: none yet
  std::atomic<std::uint32_t> entered_;
  std::atomic<std::uint32_t> differ_;
};

}  // namespace shmem
