// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

// ThreadSanitizer does not see streaming stores, so there it gets a copy that it sees.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define SHMEM_HAS_STREAMING 1
#include <immintrin.h>
#endif

namespace shmem {

void copy_bytes(void* destination, const void* source, std::size_t size) {
  if (size >= kStreamingFrom) {
    copy_streaming(destination, source, size);
  } else if (size != 0) {
    std::memcpy(destination, source, size);
  }
}

#ifdef SHMEM_HAS_STREAMING

namespace {

constexpr std::size_t kLine = 64;

// Whole lines, so that the processor combines the stores into one write to memory each. `to` is aligned to a line.

void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t size) {
  for (std::size_t line = 0; line < size; line += kLine) {
    for (std::size_t i = line; i < line + kLine; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
}

/// A tenth faster; half the instructions.
__attribute__((target("avx"))) void stream_lines_avx(std::byte* to, const std::byte* from, std::size_t size) {
  for (std::size_t line = 0; line < size; line += kLine) {
    const auto* source = reinterpret_cast<const __m256i*>(from + line);
    auto* target = reinterpret_cast<__m256i*>(to + line);
    const __m256i low = _mm256_loadu_si256(source);
    const __m256i high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
  }
}

}  // namespace

void copy_streaming(void* destination, const void* source, std::size_t size) {
  if (size == 0) {
    return;
  }
  auto* to = static_cast<std::byte*>(destination);
  const auto* from = static_cast<const std::byte*>(source);
  const std::size_t head = std::min(size, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  const std::size_t body = (size - head) / kLine * kLine;
  const std::size_t tail = size - head - body;
  std::memcpy(to, from, head);
  if (__builtin_cpu_supports("avx") != 0) {
    stream_lines_avx(to + head, from + head, body);
  } else {
    stream_lines_sse2(to + head, from + head, body);
  }
  std::memcpy(to + head + body, from + head + body, tail);
  // The data before whatever the caller stores next, a "done" flag for one.
  _mm_sfence();
}

#else

void copy_streaming(void* destination, const void* source, std::size_t size) {
  if (size != 0) {
    std::memcpy(destination, source, size);
  }
}

#endif

}  // namespace shmem
