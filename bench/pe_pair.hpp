// SPDX-License-Identifier: Apache-2.0
// Two PEs that measure together. Every method is called by both, in the same order; PE 0 measures, PE 1 is the other
// side.
#pragma once

#include <cstddef>
#include <string>

#include "bench/clock.hpp"
#include "bench/points.hpp"
#include "bench/round_trip.hpp"
#include "bench/sections.hpp"

namespace bench {

/// `size` bytes of zeroed symmetric memory, kept until shmem_finalize. Throws std::runtime_error.
void* allocate_symmetric(std::size_t size);

/// What two PEs share.
struct Meeting {
  PingPong lines;
  bool verdict;  // written by PE 0, read by PE 1 after they have met
};

class Pair {
 public:
  /// Between shmem_init and shmem_finalize of a job of two PEs; throws std::runtime_error if there are more or less.
  Pair();

  [[nodiscard]] bool measures() const { return measures_; }

  /// The raw round trip between the two PEs; nothing of worth on PE 1.
  double raw();

  /// Returns on PE 1 once PE 0 has come here, and on PE 0 once PE 1 has.
  void meet();

  /// Measures `copy` once on PE 0, PE 1 calls `take_part` meanwhile; then PE 1 reads the `size` bytes that came.
  template <typename Copy, typename TakePart>
  double copy_and_read(Copy&& copy, TakePart&& take_part, const char* destination, std::size_t size) {
    double nanoseconds = 0;
    meet();
    if (measures_) {
      nanoseconds = time_each(1, copy);
    } else {
      take_part();
    }
    meet();
    if (!measures_) {
      read_all(destination, size);
    }
    meet();
    return nanoseconds;
  }

  /// Prints points of which `measure` fills in the figure and, if it is not the raw round trip, the base.
  template <typename Measure>
  void print_points(const std::string& name, Measure&& measure) {
    Series series{name, {}};
    for (Repeats repeats; agree(repeats.another());) {
      Point point;
      point.raw_before = raw();
      measure(point);
      point.raw_after = raw();
      point.base = point.base == 0 ? point.raw() : point.base;
      series.points.push_back(point);
    }
    print(series);
  }

 private:
  /// What PE 0 says, on both.
  bool agree(bool mine);
  static void read_all(const char* bytes, std::size_t size);
  void print(const Series& series) const;

  bool measures_;
  Meeting* meeting_;  // PE 0's, seen from here
};

/// What is measured.
void measure_barriers(Pair& pair);
void measure_puts(Pair& pair);
void measure_kv_shuffle(Pair& pair);

}  // namespace bench
