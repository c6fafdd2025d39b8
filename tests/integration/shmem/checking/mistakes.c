/* SPDX-License-Identifier: Apache-2.0 */
/* mistakes NAME: makes one mistake that SHMEM_DEBUG reports. The expected reports are in checking_test.cpp. */
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me, pes;
static long* block; /* 20 bytes of the heap, followed by 16 longs */
static long* words;
static long global_words[16];
static long lock;
static long psync[SHMEM_REDUCE_SYNC_SIZE], other_psync[SHMEM_REDUCE_SYNC_SIZE];
static int work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static int right(void) {
  return (me + 1) % pes;
}

/* Memory */

static void put_freed(void) {
  shmem_free(block);
  shmem_putmem(block, words, 8, right());
}
static void put_behind_end(void) {
  shmem_putmem(block, words, 24, right());
}
static void get_never_allocated(void) {
  shmem_long_get(words, words + (1 << 20), 1, right());
}
static void atomic_freed(void) {
  shmem_free(words);
  shmem_long_atomic_inc(words, right());
}
static void put_stack(void) {
  long mine = 0;
  shmem_long_p(&mine, 1, right());
}
static void put_to_pointer(void) {
  shmem_long_p((long*)shmem_ptr(words, right()), 1, right());
}
static void put_null(void) {
  shmem_long_put(words, NULL, 2, right());
}
static void strided_null(void) {
  shmem_long_iget(NULL, words, 2, 1, 2, right());
}
static void fetch_null(void) {
  shmem_long_atomic_fetch_nbi(NULL, words, right());
}
static void put_from_freed(void) {
  shmem_free(block);
  shmem_putmem(words, block, 8, right());
}
static void put_overlap(void) {
  shmem_long_put(words + 1, words, 4, me);
}
static void get_overlap(void) {
  shmem_long_get(global_words, global_words + 1, 4, me);
}
static void put_no_pe(void) {
  shmem_long_p(words, 1, 7);
}
static void put_huge(void) {
  shmem_long_put(words, words, SIZE_MAX / 4, right());
}
static void put_negative(void) {
  volatile int count = -1;
  shmem_putmem(words, global_words, (size_t)count, right());
}
static void strides(void) {
  shmem_long_iput(words, global_words, 0, 1, 2, right());
}
static void unaligned(void) {
  shmem_int_atomic_inc((int*)((char*)words + 2), right());
}
static void signal_op(void) {
  shmem_putmem_signal(words, global_words, 8, (uint64_t*)words + 8, 1, 42, right());
}
static void comparison(void) {
  shmem_long_wait_until(words, 42, 1);
}
static void wait_stack(void) {
  long mine = 0;
  shmem_long_wait_until(&mine, SHMEM_CMP_EQ, 1);
}
static void wait_freed(void) {
  shmem_free(words);
  shmem_long_wait_until(words, SHMEM_CMP_EQ, 1);
}
static void destroyed_context(void) {
  shmem_ctx_t ctx;
  shmem_ctx_create(0, &ctx);
  shmem_ctx_destroy(ctx);
  shmem_ctx_long_p(ctx, words, 1, right());
}

/* Collective calls */

static void other_call(void) {
  if (me == 0) {
    shmem_barrier_all();
  } else {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 1, 1);
  }
}
static void other_operation(void) {
  if (me == 0) {
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 1, 1);
  } else {
    shmem_long_max_reduce(SHMEM_TEAM_WORLD, words, words + 1, 1);
  }
}
static void other_root(void) {
  shmem_broadcastmem(SHMEM_TEAM_WORLD, words, words + 1, 8, me);
}
static void other_size(void) {
  shmem_long_fcollect(SHMEM_TEAM_WORLD, words + 8, words, 1 + (size_t)me);
}
static void other_dest(void) {
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, me == 0 ? words : global_words, words + 4, 1);
}
static void other_team(void) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
  if (me == 0) {
    shmem_team_sync(team);
    shmem_barrier_all();
  } else {
    shmem_barrier_all();
    shmem_team_sync(team);
  }
}
/* Teams {0, 1}, {1, 2} and {0, 2}: each PE waits in another one. */
static void circle(void) {
  shmem_team_t team[3] = {SHMEM_TEAM_INVALID, SHMEM_TEAM_INVALID, SHMEM_TEAM_INVALID};
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team[0]);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 2, NULL, 0, &team[1]);
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, 2, NULL, 0, &team[2]);
  shmem_team_sync(team[me]);
}
static void reduce_overlap(void) {
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words, words + 1, 4);
}
static void collect_in_place(void) {
  shmem_long_fcollect(SHMEM_TEAM_WORLD, words, words, 1);
}
static void collective_freed(void) {
  shmem_free(block);
  shmem_broadcastmem(SHMEM_TEAM_WORLD, words, block, 8, 0);
}
static void malloc_sizes(void) {
  shmem_malloc(100 + (size_t)me);
}
static void malloc_or_barrier(void) {
  if (me == 0) {
    shmem_malloc(100);
  } else {
    shmem_barrier_all();
  }
}
static void free_others(void) {
  shmem_free(me == 0 ? block : words);
}
static void split_others(void) {
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, me == 0 ? 0 : 1, 1, 1, NULL, 0, &team);
}
static void early_end(void) {
  if (me != 0) {
    shmem_barrier_all();
  }
}
static void arrive(void) {
  if (me == 0) {
    shmem_barrier_all();
  } else {
    shmemx_barrier_arrive(SHMEM_TEAM_WORLD);
    shmemx_barrier_wait(SHMEM_TEAM_WORLD);
  }
}
static void other_set(void) {
  shmem_barrier(0, 0, me == 1 ? 2 : 3, psync);
}
static void other_sync_words(void) {
  shmem_barrier(0, 0, pes, me == 0 ? psync : other_psync);
}
static void dirty_sync_words(void) {
  psync[2] = 5;
  shmem_int_sum_to_all((int*)words, (int*)(words + 1), 1, 0, 0, pes, work, psync);
}
static void late(void) {
  if (me != 0) {
    sleep(600);
  }
  shmem_barrier_all();
}
static void destroyed_team(void) {
  shmem_team_t team;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team);
  shmem_team_destroy(team);
  shmem_team_destroy(team);
}

/* Locks */

static void foreign_lock(void) {
  if (me == 0) {
    shmem_set_lock(&lock);
  }
  shmem_barrier_all();
  if (me == 1) {
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
}
static void lock_twice(void) {
  shmem_set_lock(&lock);
  shmem_set_lock(&lock);
}
static void lock_garbage(void) {
  lock = 0x7777777777777777;
  shmem_barrier_all();
  shmem_set_lock(&lock);
}
static void lock_held(void) {
  if (me == 1) {
    shmem_set_lock(&lock);
  }
}

/* Threads */

/* Until the other thread has entered its call. */
static void* put_for_long(void* argument) {
  (void)argument;
  for (int i = 0; i < 5000; ++i) {
    usleep(10000);
    shmem_long_p(words, 1, right());
  }
  return NULL;
}
static void single(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, put_for_long, NULL);
  pthread_join(thread, NULL);
}
static void serialized(void) {
  pthread_t thread;
  if (me == 0) {
    pthread_create(&thread, NULL, put_for_long, NULL);
  } else {
    sleep(50);
  }
  shmem_barrier_all();
}

static void* sync_world(void* argument) {
  (void)argument;
  shmem_sync_all();
  return NULL;
}
static void two_at_once(void) {
  pthread_t thread;
  if (me == 0) {
    pthread_create(&thread, NULL, sync_world, NULL);
    shmem_sync_all();
  }
  sleep(50);
}

/* Begin and end */

static void leak(void) {
  shmem_malloc(1000);
}
static void nothing(void) {}
static void after_end(void) {
  shmem_finalize();
  shmem_long_p(words, 1, right());
}

struct mistake {
  const char* name;
  void (*make)(void);
};
#define MISTAKE(name) \
  { #name, name }
static const struct mistake kMistakes[] = {
    MISTAKE(put_freed),         MISTAKE(put_behind_end),   MISTAKE(get_never_allocated),
    MISTAKE(atomic_freed),      MISTAKE(put_stack),        MISTAKE(put_to_pointer),
    MISTAKE(put_null),          MISTAKE(strided_null),     MISTAKE(fetch_null),
    MISTAKE(put_from_freed),    MISTAKE(put_overlap),      MISTAKE(get_overlap),
    MISTAKE(put_no_pe),         MISTAKE(put_huge),         MISTAKE(put_negative),
    MISTAKE(strides),           MISTAKE(unaligned),        MISTAKE(signal_op),
    MISTAKE(comparison),        MISTAKE(wait_stack),       MISTAKE(wait_freed),
    MISTAKE(destroyed_context), MISTAKE(other_call),       MISTAKE(other_operation),
    MISTAKE(other_root),        MISTAKE(other_size),       MISTAKE(other_dest),
    MISTAKE(other_team),        MISTAKE(circle),           MISTAKE(reduce_overlap),
    MISTAKE(collect_in_place),  MISTAKE(collective_freed), MISTAKE(malloc_sizes),
    MISTAKE(malloc_or_barrier), MISTAKE(free_others),      MISTAKE(split_others),
    MISTAKE(early_end),         MISTAKE(arrive),           MISTAKE(other_set),
    MISTAKE(other_sync_words),  MISTAKE(dirty_sync_words), MISTAKE(late),
    MISTAKE(destroyed_team),    MISTAKE(foreign_lock),     MISTAKE(lock_twice),
    MISTAKE(lock_garbage),      MISTAKE(lock_held),        MISTAKE(single),
    MISTAKE(serialized),        MISTAKE(two_at_once),      MISTAKE(leak),
    MISTAKE(nothing),           MISTAKE(after_end),
};

int main(int argc, char** argv) {
  if (argc != 2) {
    return 2;
  }
  int level;
  const int wanted = strcmp(argv[1], "serialized") == 0    ? SHMEM_THREAD_SERIALIZED
                     : strcmp(argv[1], "two_at_once") == 0 ? SHMEM_THREAD_MULTIPLE
                                                           : SHMEM_THREAD_SINGLE;
  shmem_init_thread(wanted, &level);
  me = shmem_my_pe();
  pes = shmem_n_pes();
  block = (long*)shmem_malloc(20);
  words = (long*)shmem_calloc(16, sizeof(long));
  for (size_t i = 0; i < sizeof kMistakes / sizeof *kMistakes; ++i) {
    if (strcmp(kMistakes[i].name, argv[1]) == 0) {
      kMistakes[i].make();
      if (strcmp(argv[1], "after_end") == 0) {
        return 0;
      }
      if (strcmp(argv[1], "nothing") == 0) {
        shmem_free(block);
        shmem_free(words);
      }
      shmem_finalize();
      return 0;
    }
  }
  return 2;
}
