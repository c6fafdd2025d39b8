// SPDX-License-Identifier: Apache-2.0
// One PE of a job that measures calls beside processes that compute: of libshmem or, built by Open MPI's compiler with
// BENCH_OPENMPI_SHMEM, of Open MPI. Nothing binds the PEs here.
//
//   neighbour_worker FILE MILLISECONDS      FILE: not used; MILLISECONDS: for each call
//
// Prints a point for each row of about 3 ms: the nanoseconds of a call, and as its base the number of calls.
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/library.hpp"
#include "bench/measure.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

constexpr double kRow = 3e6;
/// A row in which calls have become slow ends before the next item is too late.
constexpr double kLongestRow = 60e6;
constexpr std::size_t kSizes[] = {8, 2048, std::size_t{128} << 10};

struct Call {
  std::string name;
  std::function<void()> make;
};

/// Symmetric memory for the calls, and the word by which PE 0 tells the others how many calls the next row has.
class Calls {
 public:
  Calls()
      : pes_(shmem_n_pes()),
        words_(kSizes[2] / sizeof(long) * static_cast<std::size_t>(pes_)),
        to_(allocate(words_)),
        from_(allocate(words_)),
        signal_(allocate(1)),
        lock_(allocate(1)),
        count_(allocate(1)),
        collectives_(words_) {
    shmem_barrier_all();
  }

  [[nodiscard]] std::vector<Call> all() {
    std::vector<Call> calls{{"barrier", [] { shmem_barrier_all(); }}};
    for (const std::size_t bytes : kSizes) {
      const std::size_t words = bytes / sizeof(long);
      const std::string size = " " + size_text(bytes);
      // From every PE in turn, so that each call waits for the previous one.
      calls.push_back({"broadcast" + size, [this, words] {
                         collectives_.broadcast(to_, from_, words,
                                                static_cast<int>(turn_++ % static_cast<unsigned>(pes_)));
                       }});
      calls.push_back({"fcollect" + size, [this, words] { collectives_.fcollect(to_, from_, words); }});
      calls.push_back({"sum" + size, [this, words] { collectives_.sum(to_, from_, words); }});
    }
    calls.push_back({"signal", [this] { signal(); }});
    calls.push_back({"lock", [this] {
                       shmem_set_lock(lock_);
                       shmem_clear_lock(lock_);
                     }});
    return calls;
  }

  /// Called by all PEs; returns PE 0's count.
  long agree(long count) {
    if (shmem_my_pe() == 0) {
      for (int pe = 0; pe < pes_; ++pe) {
        shmem_long_p(count_, count, pe);
      }
    }
    shmem_barrier_all();
    const long agreed = *static_cast<volatile long*>(count_);
    shmem_barrier_all();
    return agreed;
  }

 private:
  static long* allocate(std::size_t words) {
    auto* memory = static_cast<long*>(shmem_malloc(words * sizeof(long)));
    if (memory == nullptr) {
      throw std::runtime_error("no symmetric memory");
    }
    std::memset(memory, 0, words * sizeof(long));
    return memory;
  }
  /// One word around the ring of PEs.
  void signal() {
    const int next = (shmem_my_pe() + 1) % pes_;
    const long round = ++rounds_;
    if (shmem_my_pe() == 0) {
      shmem_long_p(signal_, round, next);
      shmem_long_wait_until(signal_, SHMEM_CMP_GE, round);
    } else {
      shmem_long_wait_until(signal_, SHMEM_CMP_GE, round);
      shmem_long_p(signal_, round, next);
    }
  }

  int pes_;
  std::size_t words_;
  long* to_;
  long* from_;
  long* signal_;
  long* lock_;
  long* count_;
  Collectives collectives_;
  unsigned turn_ = 0;
  long rounds_ = 0;
};

/// On PE 0: how many calls the next row has; 0: none follows.
long next_count(double milliseconds, const Stopwatch& watch, const std::vector<Point>& rows) {
  if (watch.nanoseconds() > milliseconds * 1e6) {
    return 0;
  }
  if (rows.empty()) {
    return 1;
  }
  double least = rows.front().figure;
  for (const Point& row : rows) {
    least = std::min(least, row.figure);
  }
  const auto grown = 4 * static_cast<long>(rows.back().base);
  const auto fits = static_cast<long>(std::min(kRow / least, kLongestRow / rows.back().figure));
  return std::max(1L, std::min(grown, fits));
}

std::vector<Point> measure(Calls& calls, const Call& call, double milliseconds) {
  const Stopwatch watch;
  std::vector<Point> rows;
  for (long count = 1; (count = calls.agree(next_count(milliseconds, watch, rows))) > 0;) {
    const double each = time_each(static_cast<int>(count), call.make);
    rows.push_back({.raw_before = 1, .figure = each, .base = static_cast<double>(count), .raw_after = 1});
  }
  // The first rows only find out how many calls fill a row.
  const auto full =
      std::find_if(rows.begin(), rows.end(), [](const Point& row) { return row.figure * row.base >= kRow / 2; });
  return {full == rows.end() ? rows.begin() : full, rows.end()};
}

void measure_all(double milliseconds) {
  const Library library;
  Calls calls;
  for (const Call& call : calls.all()) {
    const auto rows = measure(calls, call, milliseconds);
    if (Library::me() == 0) {
      write_series(std::cout, {call.name, rows});
    }
  }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "Usage: " << argv[0] << " FILE MILLISECONDS\n";
    return 2;
  }
  try {
    bench::measure_all(std::atof(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
}
