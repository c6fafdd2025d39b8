// SPDX-License-Identifier: Apache-2.0
// A profiling library in C++ (OpenSHMEM 1.6, section 10) defines routines as the specification writes them: without
// noexcept.
#include <shmem.h>

#include <cstdio>

namespace {
int barriers = 0;
}  // namespace

extern "C" void shmem_barrier_all(void) {
  ++barriers;
  pshmem_barrier_all();
}

extern "C" int shmem_complexd_sum_reduce(shmem_team_t team, std::complex<double>* dest,
                                         const std::complex<double>* source, size_t nreduce) {
  return pshmem_complexd_sum_reduce(team, dest, source, nreduce);
}

int main() {
  shmem_init();
  shmem_barrier_all();
  shmem_barrier_all();
  shmem_finalize();
  std::printf("%d barriers\n", barriers);
  return barriers == 2 ? 0 : 1;
}
