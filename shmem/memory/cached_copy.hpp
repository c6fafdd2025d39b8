// SPDX-License-Identifier: Apache-2.0
// Copies through the cache, also fast at addresses at which the C library's are slow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace shmem {

/// What decides which routine copies fast.
struct CopyProcessor {
  bool amd = false;
  bool avx2 = false;
  bool erms = false;  // it says that `rep movsb` is fast, so glibc uses that
  int family = 0;     // 25: Zen 3 and 4; 26: Zen 5
  int glibc = 0;      // 36 for 2.36; 0: another C library

  /// The one that runs this process, and its C library.
  static CopyProcessor here();
};

enum class CopyRoutine {
  kLibrary,     // memcpy of the C library
  kAscending,   // vectors, from the first byte to the last
  kDescending,  // vectors, from the last byte to the first
};

/// The routine for `size` bytes, a part of a copy of `whole` bytes, from the address `from` to the address `to`.
CopyRoutine copy_routine(const CopyProcessor& processor, std::size_t size, std::size_t whole, std::uintptr_t to,
                         std::uintptr_t from);

/// REQUIRES: no overlap; and AVX2, unless it is kLibrary. Few bytes are copied by the library in any case.
void copy_by(CopyRoutine routine, void* to, const void* from, std::size_t size);

/// Below this size the C library copies with vectors on all processors, and handles all addresses well.
constexpr std::size_t kLeastChosen = 2113;

/// Copies by the routine for this processor. REQUIRES: size is kLeastChosen or more.
void copy_chosen(void* to, const void* from, std::size_t size, std::size_t whole);

/// Copies a part of `whole` bytes as memcpy, by the routine for this processor; both may be null if the size is 0.
inline void copy_part_cached(void* to, const void* from, std::size_t size, std::size_t whole) {
  if (size >= kLeastChosen) {
    copy_chosen(to, from, size, whole);
  } else if (size != 0) {
    std::memcpy(to, from, size);
  }
}
inline void copy_cached(void* to, const void* from, std::size_t size) {
  copy_part_cached(to, from, size, size);
}

/// The same if the two overlap.
inline void move_cached(void* to, const void* from, std::size_t size) {
  const auto distance = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (distance >= size && -distance >= size) {
    copy_cached(to, from, size);
  } else if (distance != 0 && size != 0) {
    std::memmove(to, from, size);
  }
}

}  // namespace shmem
