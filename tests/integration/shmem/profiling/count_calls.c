/* SPDX-License-Identifier: Apache-2.0 */
/* A profiling library (OpenSHMEM 1.6, section 10): counts the calls of three routines and prints them at the end. */
#include <pshmem.h>
#include <stdio.h>

static int mallocs, barriers, puts_of_long;

void* shmem_malloc(size_t size) {
  ++mallocs;
  return pshmem_malloc(size);
}

void shmem_barrier_all(void) {
  ++barriers;
  pshmem_barrier_all();
}

void shmem_long_put(long* dest, const long* source, size_t nelems, int pe) {
  ++puts_of_long;
  pshmem_long_put(dest, source, nelems, pe);
}

void shmem_finalize(void) {
  fprintf(stderr, "PE %d: shmem_malloc %d, shmem_barrier_all %d, shmem_long_put %d\n", pshmem_my_pe(), mallocs,
          barriers, puts_of_long);
  pshmem_finalize();
}
