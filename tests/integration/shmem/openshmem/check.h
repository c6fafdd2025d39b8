/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the programs of this folder, which are compiled as C11 and as C++. */
#ifndef OPENSHMEM_CHECK_H
#define OPENSHMEM_CHECK_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PE_CHECK_ENDS_JOB
#include "tests/support/pe.h"
#include "types.h"

/* PE `pe`'s element i, in every type: small enough for a signed char, different for neighbours. */
static inline short pattern(int pe, size_t i) {
  return (short)(((size_t)pe * 7 + i * 3 + 1) % 100);
}

static inline int right(void) {
  return (shmem_my_pe() + 1) % shmem_n_pes();
}
static inline int left(void) {
  return (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
}

/* Bytes of symmetric memory for one test: in the heap, and as a global variable. */
enum { kBytes = 4096 };
static char global_memory[2][kBytes] __attribute__((aligned(64)));

/* Calls test(dest, source) with memory of both kinds, zero at first on all PEs. */
static inline void on_heap_and_globals(void (*test)(void* dest, void* source)) {
  char* heap = (char*)shmem_calloc(2, kBytes);
  CHECK(heap != NULL);
  test(heap, heap + kBytes);
  shmem_free(heap);
  memset(global_memory, 0, sizeof global_memory);
  shmem_barrier_all();
  test(global_memory[0], global_memory[1]);
  shmem_barrier_all();
}

#endif
