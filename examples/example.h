/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by all examples: numbers from the command line, and one verdict of all PEs. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

/* Argument `index` as a number from `least` to `most`, or `initial` without the argument. All PEs have the same
 * arguments, so all exit together if it is not such a number. Called after shmem_init. */
static inline long number_argument(int argc, char** argv, int index, long initial, long least, long most,
                                   const char* usage) {
  if (index >= argc) {
    return initial;
  }
  char* end = NULL;
  const long value = strtol(argv[index], &end, 10);
  if (end != argv[index] && *end == '\0' && value >= least && value <= most) {
    return value;
  }
  if (shmem_my_pe() == 0) {
    fprintf(stderr, "Usage: %s %s\n\"%s\" is not a number from %ld to %ld\n", argv[0], usage, argv[index], least, most);
  }
  shmem_finalize();
  exit(2);
}

/* Returns `memory`, the result of an allocation; ends all PEs if it is NULL. */
static inline void* must_have(void* memory) {
  if (memory == NULL) {
    fprintf(stderr, "PE %d: out of memory\n", shmem_my_pe());
    shmem_global_exit(1);
    exit(1); /* compilers do not know that the line above does not return */
  }
  return memory;
}

/* Sums the PEs' errors; PE 0 prints the verdict. Returns the program's exit status, the same on all PEs. Uses only
 * OpenSHMEM 1.4, as most of the examples do. */
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
