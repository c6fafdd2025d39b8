/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls whose numbers and bytes profile_test knows. Compiled as C11 and as C++. Each PE moves to its right neighbour,
 * by calls of each kind; with an argument, PE 1 aborts while the others wait in a barrier.
 */
#include <pthread.h>
#include <shmem.h>
#include <stdlib.h>

static long* words;
static int right;

static void* put_in_thread(void* argument) {
  const long value = 5;
  for (int i = 0; i < 10; ++i) {
    shmem_long_put(words, &value, 1, right); /* 80 bytes */
  }
  return argument;
}

int main(int argc, char** argv) {
  (void)argv;
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  right = (me + 1) % pes;
  words = (long*)shmem_malloc(4096);
  uint64_t* signal = (uint64_t*)shmem_calloc(1, sizeof(uint64_t));
  long mine[32] = {0};

  shmem_long_put(words, mine, 3, right);                                    /* 24 bytes */
  shmem_put(words, mine, 1, right);                                         /* 8 bytes, as long_put */
  shmem_int_p((int*)words, 7, right);                                       /* 4 bytes */
  shmem_put32(words, mine, 6, right);                                       /* 24 bytes */
  shmem_putmem_nbi(words, mine, 100, right);                                /* 100 bytes */
  shmem_short_iput((short*)words, (short*)mine, 2, 1, 5, right);            /* 10 bytes */
  shmem_ibput64(words, mine, 4, 3, 2, 3, right);                            /* 48 bytes */
  shmem_putmem_signal(words, mine, 50, signal, 1, SHMEM_SIGNAL_SET, right); /* 50 bytes */
  shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
  shmem_longdouble_get((long double*)words + 20, (long double*)words, 2, right); /* 32 bytes back */
  mine[0] = shmem_long_g(words, right);                                          /* 8 bytes back */
  mine[1] = shmem_int_atomic_fetch_add((int*)words, 1, right);                   /* 4 bytes */
  shmem_uint64_atomic_set((uint64_t*)words, 1, right);                           /* 8 bytes */

  /* PE numbers of a context are those of its team, here in reverse order. */
  shmem_team_t reversed = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &reversed);
  shmem_ctx_t ctx = SHMEM_CTX_INVALID;
  shmem_team_create_ctx(reversed, 0, &ctx);
  shmem_ctx_putmem(ctx, words, mine, 1000, pes - 1 - right); /* 1000 bytes */
  shmem_ctx_quiet(ctx);
  shmem_ctx_destroy(ctx);

  pthread_t thread;
  pthread_create(&thread, NULL, put_in_thread, NULL);
  put_in_thread(NULL);
  pthread_join(thread, NULL);

  shmem_barrier_all();
  shmem_double_sum_reduce(SHMEM_TEAM_WORLD, (double*)words, (double*)words + 100, 7);
  if (argc > 1) {
    shmem_barrier_all();
    if (me == 1) {
      abort();
    }
  }
  shmem_barrier_all();
  shmem_finalize();
  return 0;
}
