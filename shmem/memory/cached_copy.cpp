// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/cached_copy.hpp"

#include <cstdint>
#include <cstdlib>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif
// ThreadSanitizer does not see accesses of 32 bytes, so there the library's copy takes their place.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define SHMEM_HAS_VECTOR_COPY 1
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace shmem {
namespace {

/// Copies that vectors of our own make.
struct OwnSizes {
  std::size_t last = 0;
  std::size_t last_whole = SIZE_MAX;  // of which a copy may be a part
  [[nodiscard]] bool have(std::size_t size, std::size_t whole) const {
    return size >= kLeastChosen && size <= last && whole <= last_whole;
  }
};

/// glibc uses `rep movsb` for more than 2112 bytes, on AMD's processors up to the size of the second-level cache, which
/// has at most 1 MiB. With vectors it copies the rest, and is good at all addresses.
constexpr OwnSizes kRepeated{.last = std::size_t{1} << 20};
/// From this family on, `rep movsb` is at most twice slower at bad addresses. Vectors are faster at nearly all pairs of
/// addresses while source and destination fit in the first-level cache of 48 KiB, and slower at most of them beyond.
constexpr int kRepeatedWell = 26;
constexpr OwnSizes kInFirstCache{.last = std::size_t{24} << 10, .last_whole = std::size_t{24} << 10};
/// On AMD's processors, where (in family 25) it is 10 to 15 times slower if the destination is 1 to 63 bytes further in
/// its page than the source, glibc does not use it since this version (its bug 30994).
constexpr int kNotRepeatedOnAmd = 40;

/// What the library's memcpy copies slowly at some addresses: only AMD's processors have such. Intel's `rep movsb` was
/// as fast as vectors or faster at all addresses that were measured (on a Xeon of 2023, which has FSRM; older ones were
/// not measured). On arm64 the library uses vectors.
OwnSizes own_sizes_of(const CopyProcessor& processor) {
  const bool repeats = processor.amd && processor.erms && processor.glibc < kNotRepeatedOnAmd;
  if (!repeats || !processor.avx2) {
    return {};
  }
  return processor.family < kRepeatedWell ? kRepeated : kInFirstCache;
}

/// A load waits for an earlier store, which it seems to read, if the lowest 12 bits of their addresses are equal and
/// the store has not left the processor yet. So no load may soon follow a store to an address that is a little higher
/// in its page. glibc's copy by vectors has the same rule: with it, 32 KiB to an address 16 bytes further took a Zen 3
/// 0.77 us, instead of 12.1 us.
CopyRoutine order(std::uintptr_t to, std::uintptr_t from) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kLittle = 256;
  const std::size_t ahead = (to - from) % kPage;
  return ahead != 0 && ahead < kLittle ? CopyRoutine::kDescending : CopyRoutine::kAscending;
}

#ifdef SHMEM_HAS_VECTOR_COPY

constexpr auto kVector = static_cast<std::ptrdiff_t>(sizeof(__m256i));
constexpr std::ptrdiff_t kStep = 4 * kVector;
#define SHMEM_AVX2 __attribute__((target("avx2")))

SHMEM_AVX2 inline __m256i load_vector(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
SHMEM_AVX2 inline void store_vector(std::byte* to, __m256i vector) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), vector);
}
/// Loads and stores from the first vector to the last, or from the last to the first: a processor prefetches in that
/// direction.
template <bool Up>
SHMEM_AVX2 inline void copy_step(std::byte* to, const std::byte* from) {
  constexpr auto kAt = [](std::ptrdiff_t i) { return (Up ? i : 3 - i) * kVector; };
  const __m256i a = load_vector(from + kAt(0));
  const __m256i b = load_vector(from + kAt(1));
  const __m256i c = load_vector(from + kAt(2));
  const __m256i d = load_vector(from + kAt(3));
  store_vector(to + kAt(0), a);
  store_vector(to + kAt(1), b);
  store_vector(to + kAt(2), c);
  store_vector(to + kAt(3), d);
}

// Both copy what is between the ends in steps that are aligned to lines in the destination: descending, steps that
// begin in the middle of a line take 1.5 times as long. REQUIRES: size >= kLeastByVectors.
constexpr std::ptrdiff_t kCacheLine = 2 * kVector;

std::ptrdiff_t beyond_line(const std::byte* address) {
  return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(address) % kCacheLine);
}

SHMEM_AVX2 inline void copy_line(std::byte* to, const std::byte* from) {
  const __m256i a = load_vector(from);
  const __m256i b = load_vector(from + kVector);
  store_vector(to, a);
  store_vector(to + kVector, b);
}

SHMEM_AVX2 void copy_ascending(std::byte* to, const std::byte* from, std::size_t size) {
  const auto last = static_cast<std::ptrdiff_t>(size) - kStep;
  copy_line(to, from);
  for (std::ptrdiff_t at = kCacheLine - beyond_line(to); at < last; at += kStep) {
    copy_step<true>(to + at, from + at);
  }
  copy_step<true>(to + last, from + last);
}

SHMEM_AVX2 void copy_descending(std::byte* to, const std::byte* from, std::size_t size) {
  const auto end = static_cast<std::ptrdiff_t>(size);
  copy_line(to + end - kCacheLine, from + end - kCacheLine);
  for (std::ptrdiff_t at = end - beyond_line(to + end) - kStep; at > 0; at -= kStep) {
    copy_step<false>(to + at, from + at);
  }
  copy_step<false>(to, from);
}

constexpr std::size_t kLeastByVectors = kStep + kCacheLine;

#endif

const OwnSizes own_sizes = own_sizes_of(CopyProcessor::here());  // none before the initialisation

}  // namespace

CopyProcessor CopyProcessor::here() {
  CopyProcessor processor;
#if defined(__GLIBC__)
  if (const char* version = gnu_get_libc_version(); std::strncmp(version, "2.", 2) == 0) {
    processor.glibc = static_cast<int>(std::strtol(version + 2, nullptr, 10));
  }
#endif
#ifdef SHMEM_HAS_VECTOR_COPY
  __builtin_cpu_init();  // this may run before other constructors
  processor.avx2 = __builtin_cpu_supports("avx2") != 0;
  processor.amd = __builtin_cpu_is("amd") != 0;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  __cpuid(1, a, b, c, d);  // all x86-64 have it
  const unsigned base = a >> 8 & 0xF;
  processor.family = static_cast<int>(base == 0xF ? base + (a >> 20 & 0xFF) : base);
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    processor.erms = (b >> 9 & 1) != 0;
  }
#endif
  return processor;
}

CopyRoutine copy_routine(const CopyProcessor& processor, std::size_t size, std::size_t whole, std::uintptr_t to,
                         std::uintptr_t from) {
  return own_sizes_of(processor).have(size, whole) ? order(to, from) : CopyRoutine::kLibrary;
}

void copy_by(CopyRoutine routine, void* to, const void* from, std::size_t size) {
#ifdef SHMEM_HAS_VECTOR_COPY
  if (routine != CopyRoutine::kLibrary && size >= kLeastByVectors) {
    const auto copy = routine == CopyRoutine::kAscending ? copy_ascending : copy_descending;
    copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), size);
    return;
  }
#else
  static_cast<void>(routine);
#endif
  std::memcpy(to, from, size);
}

void copy_chosen(void* to, const void* from, std::size_t size, std::size_t whole) {
  if (own_sizes.have(size, whole)) {
    copy_by(order(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from)), to, from, size);
  } else {
    std::memcpy(to, from, size);
  }
}

}  // namespace shmem
