// SPDX-License-Identifier: Apache-2.0
// One PE of a job that measures remote memory access, atomics and collectives: of libshmem, or built by Open MPI's
// compiler with BENCH_OPENMPI_SHMEM, of theirs.
//
//   rma_worker FILE REPEATS PART     how often each is measured; PART is one-sided (two PEs), collective or tuning
#include "bench/rma_items.hpp"

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Player& player, const std::string& part) {
    return part == "collective" ? bench::collective_items()
           : part == "tuning"   ? bench::tuning_items()
                                : bench::one_sided_items(player);
  });
}
