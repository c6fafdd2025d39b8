// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "bench/clock.hpp"
#include "bench/round_trip.hpp"
#include "bench/sections.hpp"

namespace bench {

Series measure_raw(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  Series series{"raw round trip of a cache line", {}};
  for (Repeats repeats; repeats.another();) {
    Point point;
    point.raw_before = raw_round_trip(cpus.second);
    point.figure = raw_round_trip(cpus.second);
    point.raw_after = raw_round_trip(cpus.second);
    series.points.push_back(point);
  }
  return series;
}

Series measure_memcpy(const CpuPair& cpus) {
  const Pinned pinned(cpus.first);
  constexpr int kWarmUp = 10;
  constexpr int kCopies = 50;
  const std::vector<char> source(kMebibyte, 'x');
  std::vector<char> destination(kMebibyte, 'y');
  const auto copy = [&] {
    std::memcpy(destination.data(), source.data(), kMebibyte);
    asm volatile("" : : "r"(destination.data()) : "memory");  // the compiler must think that somebody reads it
  };
  Series series{"memcpy of 1 MiB within a process", {}};
  for (Repeats repeats; repeats.another();) {
    Point point;
    point.raw_before = raw_round_trip(cpus.second);
    time_each(kWarmUp, copy);
    point.figure = time_each(kCopies, copy);
    point.raw_after = raw_round_trip(cpus.second);
    series.points.push_back(point);
  }
  return series;
}

}  // namespace bench
