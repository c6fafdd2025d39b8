// SPDX-License-Identifier: Apache-2.0
// One of two PEs that measure kv_shuffle or, built by Open MPI's compiler with BENCH_OPENMPI_SHMEM, puts of the same
// blocks.
//
//   kv_worker FILE REPEATS PART     how often each is measured; PART is text_of(KvPart)
#include <sched.h>

#include "bench/kv_items.hpp"

int main(int argc, char** argv) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ::sched_getaffinity(0, sizeof all, &all);
  return bench::measure_items(argc, argv, [&all](bench::Player& player, const std::string& text) {
    const bench::KvPart part = bench::kv_part(text);
    if (part.cores > 1) {
      ::sched_setaffinity(0, sizeof all, &all);  // a PE of one core stays where the player has pinned it
    }
    return bench::kv_items(player, part);
  });
}
