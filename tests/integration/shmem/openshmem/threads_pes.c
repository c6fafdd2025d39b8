/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.2, SHMEM_THREAD_MULTIPLE: all threads of all PEs make every kind of call at once. Each
 * thread has its own team for collectives. */
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kRounds = 12, kElements = 33 };

typedef struct {
  long to[kElements * 8]; /* enough for 8 PEs */
  long from[kElements * 8];
  long inbox[kElements];
  uint64_t signal;
} thread_area;

static thread_area* areas; /* symmetric, one for each thread */
static long atomic_sum, locked_sum, tested_sum;
static long lock, tested_lock;
static shmem_team_t teams[kThreads];
static int me, pes;

static long value(int pe, int thread, int round, int i) {
  return pe * 1000003L + thread * 10007L + round * 101L + i;
}

static void reach_others(int thread, int round) {
  thread_area* mine = areas + thread;
  const int right = (me + 1) % pes;
  const int left = (me + pes - 1) % pes;
  for (int i = 0; i < kElements; ++i) {
    mine->from[i] = value(me, thread, round, i);
  }
  const uint64_t signal = (uint64_t)round + 1;
  shmem_long_put_signal(mine->inbox, mine->from, kElements, &mine->signal, signal, SHMEM_SIGNAL_SET, right);
  CHECK(shmem_signal_wait_until(&mine->signal, SHMEM_CMP_EQ, signal) == signal);
  for (int i = 0; i < kElements; ++i) {
    CHECK(mine->inbox[i] == value(left, thread, round, i));
  }
  CHECK(shmem_long_g(mine->from + 3, right) % 101 >= 0);
  shmem_long_atomic_add(&atomic_sum, 1, (me + thread) % pes);
}

static void meet_others(int thread, int round) {
  thread_area* mine = areas + thread;
  const shmem_team_t team = teams[thread];
  for (int i = 0; i < kElements; ++i) {
    mine->from[i] = value(me, thread, round, i);
  }
  CHECK(shmem_long_sum_reduce(team, mine->to, mine->from, kElements) == 0);
  for (int i = 0; i < kElements; ++i) {
    long sum = 0;
    for (int pe = 0; pe < pes; ++pe) {
      sum += value(pe, thread, round, i);
    }
    CHECK(mine->to[i] == sum);
  }
  CHECK(shmem_long_fcollect(team, mine->to, mine->from, kElements) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(mine->to[pe * kElements + 5] == value(pe, thread, round, 5));
  }
  CHECK(shmem_team_sync(team) == 0);
  CHECK(shmem_long_broadcast(team, mine->to, mine->from, kElements, round % pes) == 0);
  CHECK(mine->to[7] == value(round % pes, thread, round, 7));
  CHECK(shmem_long_alltoall(team, mine->to, mine->from, 4) == 0);
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(mine->to[pe * 4 + 1] == value(pe, thread, round, me * 4 + 1));
  }
  CHECK(shmem_team_sync(team) == 0);
}

/* Threads create and destroy teams at once, and no team gets another one's slot. */
static void make_teams(int thread, int round) {
  thread_area* mine = areas + thread;
  const int first = (thread + round) % pes;
  shmem_team_t part = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(teams[thread], first, 1, pes - first, NULL, 0, &part) == 0);
  CHECK((part != SHMEM_TEAM_INVALID) == (me >= first));
  if (part != SHMEM_TEAM_INVALID) {
    CHECK(shmem_team_my_pe(part) == me - first && shmem_team_n_pes(part) == pes - first);
    mine->from[0] = thread + 1;
    CHECK(shmem_long_sum_reduce(part, mine->to, mine->from, 1) == 0);
    CHECK(mine->to[0] == (thread + 1) * (long)(pes - first));
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(part, SHMEM_CTX_PRIVATE, &ctx) == 0);
    CHECK(shmem_ctx_long_g(ctx, mine->from, 0) == thread + 1);
    if (round % 2 == 0) {
      shmem_ctx_destroy(ctx);
    }
    CHECK(shmem_team_sync(part) == 0);
    shmem_team_destroy(part);
  }
  shmem_team_t row = SHMEM_TEAM_INVALID, column = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_2d(teams[thread], 2, NULL, 0, &row, NULL, 0, &column) == 0);
  CHECK(shmem_team_my_pe(row) == me % 2 && shmem_team_my_pe(column) == me / 2);
  CHECK(shmem_team_sync(column) == 0 && shmem_team_sync(row) == 0);
  shmem_team_destroy(column);
  shmem_team_destroy(row);
}

static void add_one(long* sum) {
  shmem_long_p(sum, shmem_long_g(sum, 0) + 1, 0);
}

static void take_turns(void) {
  shmem_set_lock(&lock);
  add_one(&locked_sum);
  shmem_clear_lock(&lock);
  if (shmem_test_lock(&tested_lock) == 0) {
    add_one(&tested_sum);
    shmem_clear_lock(&tested_lock);
  }
  shmem_set_lock(&tested_lock);
  add_one(&tested_sum);
  shmem_clear_lock(&tested_lock);
}

static void* run(void* argument) {
  const int thread = (int)(size_t)argument;
  for (int round = 0; round < kRounds; ++round) {
    reach_others(thread, round);
    meet_others(thread, round);
    make_teams(thread, round);
    take_turns();
  }
  return NULL;
}

PE_PART(threads) {
  int provided = -1;
  CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE);
  provided = -1;
  shmem_query_thread(&provided);
  CHECK(provided == SHMEM_THREAD_MULTIPLE);
  me = shmem_my_pe();
  pes = shmem_n_pes();
  areas = (thread_area*)shmem_calloc(kThreads, sizeof(thread_area));
  CHECK(areas != NULL && pes <= 8);
  for (int i = 0; i < kThreads; ++i) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &teams[i]) == 0);
  }
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(threads + i, NULL, run, (void*)(size_t)i) == 0);
  }
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_join(threads[i], NULL) == 0);
  }
  shmem_barrier_all();
  long sum = 0;
  for (int pe = 0; pe < pes; ++pe) {
    sum += shmem_long_g(&atomic_sum, pe);
  }
  CHECK(sum == (long)pes * kThreads * kRounds);
  CHECK(shmem_long_g(&locked_sum, 0) == (long)pes * kThreads * kRounds);
  CHECK(shmem_long_g(&tested_sum, 0) >= (long)pes * kThreads * kRounds);
  shmem_finalize();
  return 0;
}
