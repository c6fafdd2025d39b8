// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/cached_copy.hpp"

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

struct SizeRange {
  std::size_t first = 1;
  std::size_t last = 0;
  [[nodiscard]] bool has(std::size_t size) const { return size >= first && size <= last; }
};

/// glibc uses `rep movsb` from 2112 bytes on, on AMD's processors up to the size of the second-level cache, which has
/// at most 1 MiB. With vectors it copies the rest, and is good at all addresses.
constexpr SizeRange kRepeated{kLeastChosen, std::size_t{1} << 20};
/// On AMD's processors, where it is 10 to 15 times slower if the destination is 1 to 63 bytes further in its page than
/// the source, glibc does not use it since this version (its bug 30994).
constexpr int kNotRepeatedOnAmd = 40;

/// What the library's memcpy copies slowly at some addresses: only AMD's processors have such. Intel's `rep movsb` was as
/// fast as vectors or faster at all addresses that were measured (on a Xeon of 2023, which has FSRM; older ones were not
/// measured). On arm64 the library uses vectors.
SizeRange slow_sizes(const CopyProcessor& processor) {
  const bool is_slow = processor.amd && processor.erms && processor.glibc < kNotRepeatedOnAmd;
  return is_slow && processor.avx2 ? kRepeated : SizeRange{};
}

/// A load waits for an earlier store, which it seems to read, if the lowest 12 bits of their addresses are equal and
/// the store has not left the processor yet. So no load may soon follow a store to an address that is a little higher
/// in its page. glibc has the same rule.
CopyRoutine order(std::uintptr_t to, std::uintptr_t from) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kLittle = 512;
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
SHMEM_AVX2 inline void copy_step(std::byte* to, const std::byte* from) {
  const __m256i a = load_vector(from);
  const __m256i b = load_vector(from + kVector);
  const __m256i c = load_vector(from + 2 * kVector);
  const __m256i d = load_vector(from + 3 * kVector);
  store_vector(to, a);
  store_vector(to + kVector, b);
  store_vector(to + 2 * kVector, c);
  store_vector(to + 3 * kVector, d);
}

// Both copy the vectors and the steps at the ends at any alignment, and what is between in vectors that are aligned in
// the destination. REQUIRES: size >= kLeastByVectors.

std::ptrdiff_t beyond_aligned(const std::byte* address) {
  return static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(address) % kVector);
}

SHMEM_AVX2 void copy_ascending(std::byte* to, const std::byte* from, std::size_t size) {
  const auto last = static_cast<std::ptrdiff_t>(size) - kStep;
  store_vector(to, load_vector(from));
  for (std::ptrdiff_t at = kVector - beyond_aligned(to); at < last; at += kStep) {
    copy_step(to + at, from + at);
  }
  copy_step(to + last, from + last);
}

SHMEM_AVX2 void copy_descending(std::byte* to, const std::byte* from, std::size_t size) {
  const auto end = static_cast<std::ptrdiff_t>(size);
  store_vector(to + end - kVector, load_vector(from + end - kVector));
  std::ptrdiff_t at = end - beyond_aligned(to + end);
  for (at -= kStep; at > 0; at -= kStep) {
    copy_step(to + at, from + at);
  }
  copy_step(to, from);
}

constexpr std::size_t kLeastByVectors = kStep + 2 * kVector;

#endif

const SizeRange own_sizes = slow_sizes(CopyProcessor::here());  // none before the initialisation

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
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
    processor.erms = (b >> 9 & 1) != 0;
  }
#endif
  return processor;
}

CopyRoutine copy_routine(const CopyProcessor& processor, std::size_t size, std::uintptr_t to, std::uintptr_t from) {
  return slow_sizes(processor).has(size) ? order(to, from) : CopyRoutine::kLibrary;
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

void copy_chosen(void* to, const void* from, std::size_t size) {
  if (own_sizes.has(size)) {
    copy_by(order(reinterpret_cast<std::uintptr_t>(to), reinterpret_cast<std::uintptr_t>(from)), to, from, size);
  } else {
    std::memcpy(to, from, size);
  }
}

}  // namespace shmem
