// SPDX-License-Identifier: Apache-2.0
#include <shmem.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "bench/pe_pair.hpp"

namespace bench {
namespace {

constexpr int kSmallPuts = 100'000;
constexpr int kLargePuts = 20;

/// From this PE's `source` to PE 1's copy of `here`, which PE 0 also reaches as `there`.
struct Blocks {
  const char* source;
  char* here;
  char* there;

  void put() const {
    shmem_putmem(here, source, kMebibyte, 1);
    shmem_quiet();
  }
  void copy() const { std::memcpy(there, source, kMebibyte); }
};

void measure_small(Pair& pair, const Blocks& blocks) {
  const std::uint64_t value = 7;
  pair.print_points("put 8 B", [&](Point& point) {
    if (pair.measures()) {
      std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(blocks.there));  // read by nobody
      point.base = time_each(kSmallPuts, [&] { word.store(value, std::memory_order_relaxed); });
      point.figure = time_each(kSmallPuts, [&] { shmem_putmem(blocks.here, &value, sizeof value, 1); });
    }
  });
}

void measure_large_unread(Pair& pair, const Blocks& blocks) {
  pair.print_points("put 1 MiB, destination not read in between", [&](Point& point) {
    if (pair.measures()) {
      blocks.copy();
      point.base = time_each(kLargePuts, [&] { blocks.copy(); });
      blocks.put();
      point.figure = time_each(kLargePuts, [&] { blocks.put(); });
    }
  });
}

void measure_large_read(Pair& pair, const Blocks& blocks) {
  const auto one = [&](auto&& copy) {
    return pair.copy_and_read(
               copy, [] {}, blocks.here, kMebibyte) /
           kLargePuts;
  };
  pair.print_points("put 1 MiB, destination read by its owner each time", [&](Point& point) {
    for (int i = 0; i < kLargePuts; ++i) {
      point.base += one([&] { blocks.copy(); });
      point.figure += one([&] { blocks.put(); });
    }
  });
}

}  // namespace

void measure_puts(Pair& pair) {
  auto* here = static_cast<char*>(allocate_symmetric(kMebibyte));
  const Blocks blocks{static_cast<const char*>(allocate_symmetric(kMebibyte)), here,
                      static_cast<char*>(shmem_ptr(here, 1))};
  measure_small(pair, blocks);
  measure_large_unread(pair, blocks);
  measure_large_read(pair, blocks);
}

}  // namespace bench
