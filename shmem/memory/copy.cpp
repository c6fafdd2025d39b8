// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/copy.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "shmem/memory/cached_copy.hpp"

// ThreadSanitizer does not see streaming stores, so there an ordinary copy takes their place.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define SHMEM_HAS_STREAMING 1
#include <immintrin.h>
#endif

namespace shmem {

#ifdef SHMEM_HAS_STREAMING

namespace {

constexpr std::size_t kLine = 64;

void fetch(const std::byte* line) {
  __builtin_prefetch(line);
}

// Copies whole lines, so that the processor combines the stores into one write to memory each. `to` is aligned to a
// line. As many lines are prefetched from `soon`, which need not be memory.

void stream_lines_sse2(std::byte* to, const std::byte* from, std::size_t size, const std::byte* soon) {
  for (std::size_t line = 0; line < size; line += kLine) {
    fetch(soon + line);
    for (std::size_t i = line; i < line + kLine; i += sizeof(__m128i)) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
  }
}

/// A tenth faster; half the instructions.
__attribute__((target("avx"))) void stream_lines_avx(std::byte* to, const std::byte* from, std::size_t size,
                                                     const std::byte* soon) {
  for (std::size_t line = 0; line < size; line += kLine) {
    fetch(soon + line);
    const auto* source = reinterpret_cast<const __m256i*>(from + line);
    auto* target = reinterpret_cast<__m256i*>(to + line);
    const __m256i low = _mm256_loadu_si256(source);
    const __m256i high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
  }
}

void stream_lines(std::byte* to, const std::byte* from, std::size_t size, const std::byte* soon) {
  if (__builtin_cpu_supports("avx") != 0) {
    stream_lines_avx(to, from, size, soon);
  } else {
    stream_lines_sse2(to, from, size, soon);
  }
}

/// How far ahead lines are prefetched: across page ends, where the processor's own prefetching stops, and less than its
/// nearest cache holds.
constexpr std::size_t kAhead = 8192;

/// Past the cache, without the fence that must follow. Prefetches the first of the `next_size` bytes at `next`.
void stream(std::byte* to, const std::byte* from, std::size_t size, const std::byte* next, std::size_t next_size) {
  const std::size_t head = std::min(size, -reinterpret_cast<std::uintptr_t>(to) % kLine);
  const std::size_t body = (size - head) / kLine * kLine;
  const std::size_t tail = size - head - body;
  std::memcpy(to, from, head);
  to += head;
  from += head;
  const std::size_t last = std::min({body, kAhead, next_size / kLine * kLine});
  const std::size_t first = body - last;
  stream_lines(to, from, first, from + last);
  stream_lines(to + first, from + first, last, next);
  std::memcpy(to + body, from + body, tail);
}

/// Copied between two readings of the clock: more than the stores that a processor has in flight. While the cache is
/// fast, each sample is twice as long as the one before: few readings, and a part of the destination that streaming has
/// left in no cache gets into the cache if it is not longer than the part before it that is there. Otherwise repeated
/// copies to one place, which no other PE reads, would always stream.
constexpr std::size_t kSample = 4096;
constexpr std::size_t kMostSampled = std::size_t{64} << 10;
/// Ticks of the time stamp counter, 2 to 4 per nanosecond, for kSample bytes. Measured, for each of its lines: 4 to 6
/// if the line is in a cache of this processor, 10 if it is in the last one, 14 if it is in none, 16 to 55 if it is in
/// another processor's, and 6 to 9 for streaming.
constexpr std::uint64_t kLeastSlowTicks = 6 * kSample / kLine;
constexpr std::uint64_t kMostSlowTicks = 12 * kSample / kLine;
/// What streaming takes here, by the last measurements: the cache is slow if it takes longer. Relaxed: only a hint.
std::atomic<std::uint64_t> slow_ticks{kMostSlowTicks};

std::uint64_t ticks_per_sample(std::uint64_t ticks, std::size_t size) {
  return ticks * kSample / size;
}
void learn_streaming(std::uint64_t ticks, std::size_t size) {
  const std::uint64_t now = std::min(ticks_per_sample(ticks, size), kMostSlowTicks);
  const std::uint64_t mean = (3 * slow_ticks.load(std::memory_order_relaxed) + now) / 4;
  slow_ticks.store(std::max(mean, kLeastSlowTicks), std::memory_order_relaxed);
}
/// One slow sample may be an interrupt, or the first access to a page.
constexpr int kSlowSamples = 2;
/// Lines that a piece covers only in part go through the cache anyway.
constexpr std::size_t kLeastStreamed = 4 * kLine;

}  // namespace

/// Stops when the cache is found to be slow. Returns the number of bytes copied.
std::size_t BatchCopy::copy_while_fast(Piece piece) {
  // Locals, like the piece: otherwise the compiler must assume that a copy may change this object.
  const std::uint64_t limit = slow_ticks.load(std::memory_order_relaxed);
  std::uint64_t looked = looked_ != 0 ? looked_ : __rdtsc();
  std::size_t sample = sample_;
  std::size_t unseen = unseen_;
  int slow = slow_;
  const std::size_t before = piece.size;
  while (piece.size != 0 && slow < kSlowSamples) {
    const std::size_t size = std::min(piece.size, sample - unseen);
    copy_part_cached(piece.to, piece.from, size, before);
    piece = piece.without(size);
    unseen += size;
    if (unseen == sample) {
      const std::uint64_t now = __rdtsc();
      const bool is_slow = ticks_per_sample(now - looked, sample) > limit;
      slow = is_slow ? slow + 1 : 0;
      sample = is_slow ? kSample : std::min(2 * sample, kMostSampled);
      looked = now;
      unseen = 0;
    }
  }
  const std::size_t done = before - piece.size;
  done_ += done;
  const bool fast = slow < kSlowSamples;
  looked_ = fast ? looked : 0;
  sample_ = sample;
  unseen_ = unseen;
  slow_ = fast ? slow : 0;
  if (!fast) {
    to_stream_ = std::max(done_, kStreamingFrom);
  }
  return done;
}

void BatchCopy::copy(const Piece& piece, const Piece& next) {
  for (Piece left = piece; left.size != 0;) {
    std::size_t size = 0;
    if (to_stream_ == 0 || piece.size < kLeastStreamed) {
      size = copy_while_fast(left);
    } else {
      size = left.size < kStreamingFrom ? left.size : std::min(left.size, to_stream_);
      const Piece soon = size < left.size ? left.without(size) : next;
      const std::uint64_t before = size >= kStreamingFrom ? __rdtsc() : 0;
      stream(left.to, left.from, size, soon.from, soon.size);
      if (before != 0) {
        learn_streaming(__rdtsc() - before, size);
      }
      to_stream_ -= std::min(size, to_stream_);
      done_ += size;
      streamed_ = true;
    }
    left = left.without(size);
  }
}

void BatchCopy::add(void* destination, const void* source, std::size_t size) {
  const Piece piece{static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), size};
  copy(last_, piece);
  last_ = piece;
}

void BatchCopy::finish() {
  copy(last_, last_);  // nothing follows: prefetches lines that it already has
  last_ = {};
  fence();
}

void BatchCopy::fence() {
  if (streamed_) {
    _mm_sfence();  // as in copy_streaming
    streamed_ = false;
  }
}

void copy_bytes(void* destination, const void* source, std::size_t size) {
  if (size >= kStreamingFrom) {
    // add() and finish() would take some nanoseconds more.
    const BatchCopy::Piece piece{static_cast<std::byte*>(destination), static_cast<const std::byte*>(source), size};
    BatchCopy batch;
    batch.copy(piece, piece);
    batch.fence();
  } else {
    copy_cached(destination, source, size);
  }
}

void copy_streaming(void* destination, const void* source, std::size_t size) {
  if (size != 0) {
    const auto* from = static_cast<const std::byte*>(source);
    stream(static_cast<std::byte*>(destination), from, size, from, size);
    // Orders the data before the caller's next store, for example of a "done" flag.
    _mm_sfence();
  }
}

#else

void BatchCopy::add(void* destination, const void* source, std::size_t size) {
  copy_bytes(destination, source, size);
}

void BatchCopy::finish() {}

void copy_bytes(void* destination, const void* source, std::size_t size) {
  copy_cached(destination, source, size);
}

void copy_streaming(void* destination, const void* source, std::size_t size) {
  copy_bytes(destination, source, size);
}

#endif

}  // namespace shmem
