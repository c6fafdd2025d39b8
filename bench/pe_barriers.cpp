// SPDX-License-Identifier: Apache-2.0
#include <shmem.h>

#include "bench/pe_pair.hpp"

namespace bench {
namespace {

constexpr int kBarriers = 10'000;

}  // namespace

void measure_barriers(Pair& pair) {
  pair.print_points("2-PE barrier, shmem_team_sync", [](Point& point) {
    point.figure = time_each(kBarriers, [] { shmem_team_sync(SHMEM_TEAM_WORLD); });
  });
  pair.print_points("2-PE barrier, shmem_barrier_all",
                    [](Point& point) { point.figure = time_each(kBarriers, [] { shmem_barrier_all(); }); });
}

}  // namespace bench
