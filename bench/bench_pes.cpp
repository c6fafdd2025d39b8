// SPDX-License-Identifier: Apache-2.0
// What two PEs can measure. Run by bench_all under oshrun; prints points (points.hpp).
#include <shmem.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include "bench/cpus.hpp"
#include "bench/pe_pair.hpp"

namespace {

int run(const char* cpu_of_pe_0, const char* cpu_of_pe_1) {
  shmem_init();
  const bench::Pinned pinned(std::atoi(shmem_my_pe() == 0 ? cpu_of_pe_0 : cpu_of_pe_1));
  bench::Pair pair;
  bench::measure_barriers(pair);
  bench::measure_puts(pair);
  bench::measure_kv_shuffle(pair);
  shmem_finalize();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "Usage: oshrun -n 2 bench_pes CPU_OF_PE_0 CPU_OF_PE_1\n";
    return 2;
  }
  try {
    return run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "bench_pes: " << error.what() << '\n';
    return 1;
  }
}
