// SPDX-License-Identifier: Apache-2.0
// Calls beside processes that compute. The PEs agree on each row by calls of the library, so that they spin between two
// rows as long as within one: a process that slept would have priority afterwards.
#include <algorithm>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/library.hpp"

namespace bench {
namespace {

constexpr double kRow = 3e6;
/// A row in which calls have become slow ends before the next item is too late.
constexpr double kLongestRow = 60e6;
constexpr std::size_t kLargest = std::size_t{128} << 10;

/// Called by all PEs; returns PE 0's count.
long agree(long* word, long count) {
  for (int pe = 0; Library::me() == 0 && pe < Library::size(); ++pe) {
    shmem_long_p(word, count, pe);
  }
  Library::barrier();
  const long agreed = *static_cast<volatile long*>(word);
  Library::barrier();
  return agreed;
}

/// One word around the ring of PEs.
void signal(long* word, long round) {
  const int next = (Library::me() + 1) % Library::size();
  if (Library::me() == 0) {
    shmem_long_p(word, round, next);
    shmem_long_wait_until(word, SHMEM_CMP_GE, round);
  } else {
    shmem_long_wait_until(word, SHMEM_CMP_GE, round);
    shmem_long_p(word, round, next);
  }
}

using Call = std::pair<std::string, std::function<void()>>;

std::vector<Call> all_calls(Calls& calls) {
  std::vector<Call> all{{"barrier", [] { Library::barrier(); }}};
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{2048}, kLargest}) {
    const std::size_t words = bytes / sizeof(long);
    const std::string size = " " + size_text(bytes);
    all.emplace_back("broadcast" + size, [&calls, words] { calls.broadcast(words); });
    all.emplace_back("fcollect" + size, [&calls, words] { calls.fcollect(words); });
    all.emplace_back("sum" + size, [&calls, words] { calls.sum(words); });
  }
  all.emplace_back("signal", [word = symmetric_words(1), round = 0L]() mutable { signal(word, ++round); });
  all.emplace_back("lock", [lock = symmetric_words(1)] {
    shmem_set_lock(lock);
    shmem_clear_lock(lock);
  });
  return all;
}

/// On PE 0: how many calls the next row has; 0: none follows.
long next_count(double milliseconds, const Stopwatch& watch, const std::vector<Point>& rows) {
  if (watch.nanoseconds() > milliseconds * 1e6) {
    return 0;
  }
  if (rows.empty()) {
    return 1;
  }
  const auto grown = 4 * static_cast<long>(rows.back().base);
  const auto fits = static_cast<long>(std::min(kRow / figures_of(rows).least, kLongestRow / rows.back().figure));
  return std::max(1L, std::min(grown, fits));
}

std::vector<Point> measure(const std::function<void()>& call, long* agreed, double milliseconds) {
  const Stopwatch watch;
  std::vector<Point> rows;
  for (long count = 1; (count = agree(agreed, next_count(milliseconds, watch, rows))) > 0;) {
    const double each = time_each(static_cast<int>(count), call);
    rows.push_back({.raw_before = 1, .figure = each, .base = static_cast<double>(count), .raw_after = 1});
  }
  // The first rows only find out how many calls fill a row.
  const auto full =
      std::find_if(rows.begin(), rows.end(), [](const Point& row) { return row.figure * row.base >= kRow / 2; });
  return {full == rows.end() ? rows.begin() : full, rows.end()};
}

/// Measures each call for so long. Prints a point for each row of about 3 ms: the nanoseconds of a call, and as its
/// base the number of calls. Nothing binds the PEs meanwhile.
void measure_all(int milliseconds) {
  Calls calls(kLargest * static_cast<std::size_t>(Library::size()));
  long* agreed = symmetric_words(1);
  for (const auto& [name, call] : all_calls(calls)) {
    const auto rows = measure(call, agreed, milliseconds);
    if (Library::me() == 0) {
      write_series(std::cout, {name, rows});
    }
  }
}

const Part kNeighbours("neighbours", measure_all);

}  // namespace
}  // namespace bench
