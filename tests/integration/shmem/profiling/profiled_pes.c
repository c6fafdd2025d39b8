/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program without knowledge of profiling. Calls shmem_malloc 2 times, shmem_barrier_all 3 times and shmem_long_put 4
 * times, 2 of them by the generic name; and routines that do the same inside the library. Compiled as C11 and as C++.
 */
#include <shmem.h>
#include <stdio.h>

static long psync[SHMEM_BARRIER_SYNC_SIZE];

int main(void) {
  shmem_init();
  const int right = (shmem_my_pe() + 1) % shmem_n_pes();
  long* words = (long*)shmem_malloc(4 * sizeof(long));
  void* more = shmem_malloc(100);
  void* others = shmem_calloc(3, 100);
  others = shmem_realloc(others, 100000);
  shmem_barrier_all();

  const long mine = shmem_my_pe() + 1;
  shmem_long_put(words, &mine, 1, right);
  shmem_long_put(words + 1, &mine, 1, right);
  shmem_put(words + 2, &mine, 1, right);
  shmem_put(words + 3, &mine, 1, right);
  shmem_barrier_all();
  long sum = words[0] + words[1] + words[2] + words[3];
  shmem_sync_all();

  shmem_long_p(words, sum, right);
  shmem_long_put_nbi(words + 1, &sum, 1, right);
  shmem_putmem(words + 2, &sum, sizeof sum, right);
  shmem_iput(words + 3, &sum, 1, 1, 1, right);
  shmem_sync_all();
  shmem_barrier(0, 0, shmem_n_pes(), psync);
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 1, 1);
  shmem_long_collect(SHMEM_TEAM_WORLD, (long*)others, words, 1);
  shmem_team_t team = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
  shmem_team_destroy(team);

  shmem_barrier_all();
  if (shmem_my_pe() == 0) {
    printf("sum %ld\n", words[0]);
  }
  shmem_free(others);
  shmem_free(more);
  shmem_free(words);
  shmem_finalize();
  return 0;
}
