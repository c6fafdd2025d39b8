/* SPDX-License-Identifier: Apache-2.0 */
/* What all examples need beside OpenSHMEM: numbers from the command line, and one verdict of all PEs. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* Argument `index` as a number from `least` to `most`, or `initial` where there is none. All PEs have the same
 * arguments, so all of them leave together if it is no such number. Called after shmem_init. */
static inline long number_argument(int argc, char** argv, int index, long initial, long least, long most,
                                   const char* usage) {
  if (index >= argc) return initial;
  char* end = NULL;
  const long value = strtol(argv[index], &end, 10);
  if (end != argv[index] && *end == '\0' && value >= least && value <= most) return value;
  if (shmem_my_pe() == 0) {
    fprintf(stderr, "Usage: %s %s\n\"%s\" is not a number from %ld to %ld\n", argv[0], usage, argv[index], least, most);
  }
  shmem_finalize();
  exit(2);
}

/* `memory` as an allocation has given it; ends all PEs if that is NULL. */
static inline void* must_have(void* memory) {
  if (memory == NULL) {
    fprintf(stderr, "PE %d: out of memory\n", shmem_my_pe());
    shmem_global_exit(1);
    exit(1); /* compilers do not know that the line above does not return */
  }
  return memory;
}

/* Adds up what the PEs found wrong; PE 0 says whether that was nothing. The exit status of the program, the same on all
 * PEs. Uses no routine younger than OpenSHMEM 1.4, as do most of the examples. */
static inline int verdict(const char* example, long errors_of_this_pe) {
  static long errors = 0; /* static: symmetric, and PE 0's is used */
  shmem_long_atomic_add(&errors, errors_of_this_pe, 0);
  shmem_barrier_all();
  const long all = shmem_long_atomic_fetch(&errors, 0);
  if (shmem_my_pe() == 0) {
    if (all == 0) {
      printf("%s: correct\n", example);
    } else {
      printf("%s: WRONG, %ld errors\n", example, all);
    }
  }
  return all == 0 ? 0 : 1;
}

#endif
