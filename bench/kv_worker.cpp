// SPDX-License-Identifier: Apache-2.0
// One of two PEs that measure kv_shuffle or, built by Open MPI's compiler with BENCH_OPENMPI_SHMEM, puts of the same
// blocks.
//
//   kv_worker FILE REPEATS PART     how often each is measured; PART is text_of(KvPart)
#include "bench/kv_items.hpp"

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Player& player, const std::string& part) {
    return bench::kv_items(player, bench::kv_part(part));
  });
}
