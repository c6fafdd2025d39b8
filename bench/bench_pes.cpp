// SPDX-License-Identifier: Apache-2.0
// What two PEs can measure: barriers and puts. Run by bench_all under oshrun; prints points (points.hpp).
#include <shmem.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"
#include "bench/round_trip.hpp"
#include "bench/sections.hpp"

namespace bench {
namespace {

constexpr int kBarriers = 10'000;
constexpr int kSmallPuts = 100'000;
constexpr int kLargePuts = 20;
constexpr std::uint64_t kWarmUp = 1'000;

/// Symmetric memory of both PEs. Every method is called by both, in the same order; only PE 0 measures.
class Pair {
 public:
  Pair()
      : here_(static_cast<char*>(allocate(kMebibyte))),
        source_(static_cast<char*>(allocate(kMebibyte))),
        lines_(static_cast<PingPong*>(shmem_ptr(allocate(sizeof(PingPong)), 0))),
        there_(static_cast<char*>(shmem_ptr(here_, 1))) {
    std::memset(here_, 1, kMebibyte);
    std::memset(source_, 2, kMebibyte);
    shmem_barrier_all();
  }

  [[nodiscard]] bool measures() const { return shmem_my_pe() == 0; }
  /// In this PE's memory; the other PE's copy of it, as an address here; what is put there.
  [[nodiscard]] char* here() const { return here_; }
  [[nodiscard]] char* there() const { return there_; }
  [[nodiscard]] const char* source() const { return source_; }

  /// The raw round trip between the two PEs; nothing of worth on PE 1.
  double raw() {
    if (measures()) {
      ping(*lines_, kWarmUp);
      return ping(*lines_);
    }
    echo(*lines_, kWarmUp);
    echo(*lines_);
    return 0;
  }

  /// Returns on PE 1 once PE 0 has come here, and on PE 0 once PE 1 has.
  void meet() {
    if (measures()) {
      ping(*lines_, 1);
    } else {
      echo(*lines_, 1);
    }
  }

 private:
  static void* allocate(std::size_t size) {
    void* memory = shmem_align(4096, size);
    if (memory == nullptr) {
      throw std::runtime_error("no symmetric memory");
    }
    std::memset(memory, 0, size);
    return memory;
  }

  char* here_;
  char* source_;
  PingPong* lines_;
  char* there_;
};

/// kRepeats points; `measure` fills in figure and base, on both PEs.
template <typename Measure>
void print_points(Pair& pair, const std::string& name, Measure&& measure) {
  Series series{name, {}};
  for (int i = 0; i < kRepeats; ++i) {
    Point point;
    point.raw_before = pair.raw();
    measure(point);
    point.raw_after = pair.raw();
    point.base = point.base == 0 ? point.raw() : point.base;
    series.points.push_back(point);
  }
  if (pair.measures()) {
    write_series(std::cout, series);
  }
}

void barriers(Pair& pair) {
  print_points(pair, "2-PE barrier npu_v3, shmem_team_sync",
               [](Point& point) { point.figure = time_each(kBarriers, [] { shmem_team_sync(SHMEM_TEAM_WORLD); }); });
  print_points(pair, "2-PE barrier npu_v3, shmem_barrier_all",
               [](Point& point) { point.figure = time_each(kBarriers, [] { shmem_barrier_all(); }); });
}

void small_puts(Pair& pair) {
  const std::uint64_t value = 7;
  print_points(pair, "put 8 B", [&](Point& point) {
    if (pair.measures()) {
      std::atomic_ref<std::uint64_t> store(*reinterpret_cast<std::uint64_t*>(pair.there()));  // read by nobody
      point.base = time_each(kSmallPuts, [&] { store.store(value, std::memory_order_relaxed); });
      point.figure = time_each(kSmallPuts, [&] { shmem_putmem(pair.here(), &value, sizeof value, 1); });
    }
  });
}

void put_large(const Pair& pair) {
  shmem_putmem(pair.here(), pair.source(), kMebibyte, 1);
  shmem_quiet();
}

void large_puts_that_nobody_reads(Pair& pair) {
  print_points(pair, "put 1 MiB, destination not read in between", [&](Point& point) {
    if (pair.measures()) {
      put_large(pair);
      point.base = time_each(kLargePuts, [&] { std::memcpy(pair.there(), pair.source(), kMebibyte); });
      point.figure = time_each(kLargePuts, [&] { put_large(pair); });
    }
  });
}

/// Keeps the compiler from dropping a sum.
std::atomic<std::uint64_t> sink;

void read_all(const char* block) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < kMebibyte; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, block + at, sizeof word);
    sum += word;
  }
  sink.store(sum, std::memory_order_relaxed);
}

/// One copy on PE 0, then PE 1 reads what came. Nanoseconds of the copy.
template <typename Copy>
double copy_and_read(Pair& pair, Copy&& copy) {
  double nanoseconds = 0;
  if (pair.measures()) {
    nanoseconds = time_each(1, copy);
  }
  pair.meet();
  if (!pair.measures()) {
    read_all(pair.here());
  }
  pair.meet();
  return nanoseconds;
}

void large_puts_that_the_owner_reads(Pair& pair) {
  print_points(pair, "put 1 MiB, destination read by its owner each time", [&](Point& point) {
    for (int i = 0; i < kLargePuts; ++i) {
      point.base += copy_and_read(pair, [&] { std::memcpy(pair.there(), pair.source(), kMebibyte); }) / kLargePuts;
      point.figure += copy_and_read(pair, [&] { put_large(pair); }) / kLargePuts;
    }
  });
}

int run(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "Usage: oshrun -n 2 bench_pes CPU_OF_PE_0 CPU_OF_PE_1\n";
    return 2;
  }
  shmem_init();
  if (shmem_n_pes() != 2) {
    throw std::runtime_error("bench_pes measures between two PEs; run it with oshrun -n 2");
  }
  const Pinned pinned(std::atoi(argv[shmem_my_pe() == 0 ? 1 : 2]));
  Pair pair;
  barriers(pair);
  small_puts(pair);
  large_puts_that_nobody_reads(pair);
  large_puts_that_the_owner_reads(pair);
  shmem_finalize();
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "bench_pes: " << error.what() << '\n';
    return 1;
  }
}
