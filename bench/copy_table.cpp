// SPDX-License-Identifier: Apache-2.0
#include "bench/copy_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "base/size_text.hpp"
#include "bench/jobs.hpp"
#include "bench/report.hpp"
#include "shmem/memory/cached_copy.hpp"
#include "shmem/memory/copy.hpp"

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;
constexpr std::size_t kLargest = 16 * kMebibyte;
/// Behind the start of a page: those at which a processor or a C library is known to be slow, and some others.
constexpr std::size_t kOffsets[] = {0, 1, 8, 16, 32, 48, 63, 64, 4032, 4080};
/// Fewer of the large sizes, so that the table takes a few minutes only.
constexpr int rows_of(std::size_t size) {
  return size < kMebibyte ? 5 : 2;
}
/// Copied by a row out of the cache, at different places.
constexpr std::size_t kColdRow = kMebibyte / 4;

using Copy = void (*)(void*, const void*, std::size_t);

struct Routine {
  const char* name;
  Copy copy;
};
constexpr Routine kRoutines[] = {
    {"get", shmem::copy_cached},
    {"put", shmem::copy_bytes},
    {"memcpy", [](void* to, const void* from, std::size_t size) { std::memcpy(to, from, size); }}};

/// Pages of zeroes that are there.
class Room {
 public:
  explicit Room(std::size_t size) : pages_(size / kPage) {}
  [[nodiscard]] std::byte* at(std::size_t offset) { return pages_.front().bytes.data() + offset; }

 private:
  struct alignas(kPage) Page {
    std::array<std::byte, kPage> bytes;
  };
  std::vector<Page> pages_;
};

/// Removes a line from all caches.
void flush_line(const std::byte* line) {
#if defined(__x86_64__)
  _mm_clflush(line);
#elif defined(__aarch64__)
  asm volatile("dc civac, %0" : : "r"(line) : "memory");
#else
  static_cast<void>(line);
#endif
}

void flush(const std::byte* from, std::size_t size) {
  for (std::size_t i = 0; i < size; i += kLine) {
    flush_line(from + i);
  }
#if defined(__x86_64__)
  _mm_mfence();
#elif defined(__aarch64__)
  asm volatile("dsb ish" : : : "memory");
#endif
}

struct Extremes {
  double best = std::numeric_limits<double>::infinity();
  double worst = 0;
  void add(double time) {
    best = std::min(best, time);
    worst = std::max(worst, time);
  }
};

std::string c_library() {
#ifdef __GLIBC__
  return std::string("glibc ") + ::gnu_get_libc_version();
#else
  return "not glibc";
#endif
}

/// Nanoseconds of a copy of `size` bytes, `to` and `from` bytes behind the starts of pages.
class Copies {
 public:
  double warm(Copy copy, std::size_t size, std::size_t to, std::size_t from) {
    const int calls = static_cast<int>(std::clamp<std::size_t>(kMebibyte / 8 / size, 1, 512));
    const auto act = [copy, size, there = to_.at(to), here = from_.at(from)] { copy(there, here, size); };
    act();
    return time_each(calls, act);
  }

  double cold(Copy copy, std::size_t size, std::size_t to, std::size_t from) {
    const std::size_t step = size / kPage * kPage + 3 * kPage;  // beyond what a processor prefetches
    const std::size_t calls = std::max<std::size_t>(kColdRow / step, 1);
    flush(to_.at(0), calls * step);
    flush(from_.at(0), calls * step);
    std::size_t place = 0;
    return time_each(static_cast<int>(calls), [&] {
      copy(to_.at(place + to), from_.at(place + from), size);
      place += step;
    });
  }

 private:
  Room to_{kLargest + 3 * kPage};
  Room from_{kLargest + 3 * kPage};
};

using TimeOf = double (Copies::*)(Copy copy, std::size_t size, std::size_t to, std::size_t from);
using AllExtremes = std::array<Extremes, std::size(kRoutines)>;

/// The routines take turns, so that changes of the machine's speed affect all of them.
AllExtremes extremes_of(Copies& copies, TimeOf time_of, std::size_t size) {
  AllExtremes found;
  for (const std::size_t to : kOffsets) {
    for (const std::size_t from : kOffsets) {
      std::array<double, std::size(kRoutines)> least{};
      least.fill(std::numeric_limits<double>::infinity());
      for (int row = 0; row < rows_of(size); ++row) {
        for (std::size_t i = 0; i < least.size(); ++i) {
          least[i] = std::min(least[i], (copies.*time_of)(kRoutines[i].copy, size, to, from));
        }
      }
      for (std::size_t i = 0; i < least.size(); ++i) {
        found[i].add(least[i]);
      }
    }
  }
  return found;
}

void print_part(const char* title, Copies& copies, TimeOf time_of) {
  const Table table("-14 | 10 10 6 | 10 10 6 | 10 10 6");
  std::vector<std::string> head{title};
  for (const Routine& routine : kRoutines) {
    head.insert(head.end(), {routine.name, "worst", "ratio"});
  }
  table.print(head);
  for (std::size_t size = kLine; size <= kLargest; size *= 2) {
    std::vector<std::string> cells{base::size_text(size)};
    for (const Extremes& found : extremes_of(copies, time_of, size)) {
      cells.insert(cells.end(), {number(found.best, 1), number(found.worst, 1), number(found.worst / found.best, 2)});
    }
    table.print(cells);
  }
  std::puts("");
}

}  // namespace

void print_copy_table() {
  const Pinned pinned(first_two_cpus().first);
  std::printf(
      "%s, %s. Nanoseconds of a copy within a process, least of %d rows (%d from 1 MiB on), at the best and the worst\n"
      "of %zu pairs of addresses; ratio: of the two. get: through the cache. put: chooses by what it measures.\n\n",
      processor_name().c_str(), c_library().c_str(), rows_of(1), rows_of(kMebibyte),
      std::size(kOffsets) * std::size(kOffsets));
  Copies copies;
  print_part("in the cache", copies, &Copies::warm);
  print_part("in no cache", copies, &Copies::cold);
}

}  // namespace bench
