// SPDX-License-Identifier: Apache-2.0
// How figures are printed.
#pragma once

#include <cstddef>
#include <string>

#include "bench/points.hpp"

namespace bench {

/// What a figure is compared with and how it is shown.
struct Presentation {
  std::string base;       // name of Point::base; empty: compared with nothing
  std::size_t bytes = 0;  // moved per repeat: then shown in GB/s instead of nanoseconds
  double aim = 0;         // on the ratio figure / base, at most; 0: none
  std::string each{};     // what a figure is the time of: then shown as so many a second too
};

void print_machine(int first_cpu, int second_cpu);
void print_series(const Series& series, const Presentation& presentation);

}  // namespace bench
