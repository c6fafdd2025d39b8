/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Wrong uses of blocks of the symmetric heap by loads and stores, one for each argument, which tools find. "none" uses
 * blocks in all ways that are right; "signal" aborts PE 1.
 */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

static void use_blocks(void) {
  const int right = (shmem_my_pe() + 1) % shmem_n_pes();
  for (int round = 0; round < 3; ++round) {
    char* block = (char*)shmem_malloc(1000);
    memset(block, 1, 1000);
    shmem_barrier_all();
    shmem_putmem(block, block + 500, 500, right);
    shmem_barrier_all();
    block = (char*)shmem_realloc(block, 3000);
    memset(block, 2, 3000);
    block = (char*)shmem_realloc(block, 100);
    long* words = (long*)shmem_calloc(100, sizeof(long));
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 50, 13);
    shmem_long_atomic_add(words + 99, 1, right);
    shmem_barrier_all();
    if (words[99] != 1) {
      abort();
    }
    shmem_free(block);
    shmem_free(words);
    double* aligned = (double*)shmem_align(4096, 8192);
    shmem_double_fcollect(SHMEM_TEAM_WORLD, aligned, aligned + 512, 3);
    shmem_free(aligned);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  shmem_init();
  if (strcmp(what, "none") == 0) {
    use_blocks();
  }
  volatile char* block = (volatile char*)shmem_malloc(100);
  block[99] = 1;
  if (strcmp(what, "overflow") == 0) {
    block[100] = 1;
  }
  if (strcmp(what, "before") == 0) {
    char sum = 0;
    shmem_free(shmem_malloc(64));
    sum = (char)(sum + block[128]);
    block[0] = sum;
  }
  if (strcmp(what, "signal") == 0 && shmem_my_pe() == 1) {
    abort();
  }
  shmem_free((void*)block);
  if (strcmp(what, "freed") == 0) {
    block[50] = 1;
  }
  shmem_finalize();
  /* The addresses may be anybody's now. */
  return 0;
}
