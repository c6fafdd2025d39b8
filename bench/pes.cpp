// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "bench/child.hpp"
#include "bench/sections.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kLimit{90};

}  // namespace

std::vector<Series> measure_pes(const CpuPair& cpus) {
  const auto output = run({sibling_program("oshrun"), "-n", "2", "--gba", "off", sibling_program("bench_pes"),
                           std::to_string(cpus.first), std::to_string(cpus.second)},
                          {}, kLimit);
  return read_series(output);
}

}  // namespace bench
