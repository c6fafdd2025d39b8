/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.10: collective routines in a row, in the order of a team's numbers, on all kinds of memory,
 * and on active sets that do not begin with PE 0. */
#include "conformance_check.h"

enum { kWords = 16, kMostPes = 62 };
static long source[kWords * kMostPes];
static long dest[kWords * kMostPes];

static shmem_team_t team; /* all PEs, the last first */
static int mine;

static long value(int pe, int i) {
  return pe * 1000L + i;
}

static void fill(int words) {
  for (int i = 0; i < words; ++i) {
    source[i] = value(mine, i);
    dest[i] = -1;
  }
  EXPECT(shmem_team_sync(team) == 0, "shmem_team_sync returns 0");
}

/* The result has the order of the team's numbers, which is not that of the world. */
static void test_order_of_a_team(void) {
  fill(kWords * pes);
  EXPECT(shmem_long_fcollect(team, dest, source, 3) == 0, "shmem_long_fcollect returns 0");
  for (int i = 0; i < 3 * pes; ++i) {
    EXPECT(dest[i] == value(i / 3, i % 3), "fcollect concatenates by the numbers in the team");
  }
  fill(kWords * pes);
  /* PE 0 of the team gives nothing, PE 1 one element, PE 2 none, ... */
  const size_t given = (size_t)(mine % 2 == 0 ? 0 : mine);
  EXPECT(shmem_long_collect(team, dest, source, given) == 0, "shmem_long_collect returns 0");
  int at = 0;
  for (int pe = 1; pe < pes && pe < kWords; pe += 2) {
    for (int i = 0; i < pe; ++i) {
      EXPECT(dest[at++] == value(pe, i), "collect takes as many elements from each PE as it gives, also none");
    }
  }
  EXPECT(pes > kWords || dest[at] == -1, "collect writes no more than was given");
  fill(kWords * pes);
  EXPECT(shmem_long_alltoall(team, dest, source, 2) == 0, "shmem_long_alltoall returns 0");
  for (int i = 0; i < 2 * pes; ++i) {
    EXPECT(dest[i] == value(i / 2, 2 * mine + i % 2), "alltoall exchanges blocks by the numbers in the team");
  }
  for (int root = 0; root < pes; ++root) {
    fill(4);
    EXPECT(shmem_long_broadcast(team, dest, source, 4, root) == 0, "shmem_long_broadcast returns 0");
    EXPECT(dest[0] == value(root, 0) && dest[3] == value(root, 3), "the root is a number in the team; all PEs get it");
  }
  fill(4);
  EXPECT(shmem_long_sum_exscan(team, dest, source, 1) == 0, "shmem_long_sum_exscan returns 0");
  EXPECT(dest[0] == 1000L * mine * (mine - 1) / 2, "a scan adds the PEs with lower numbers in the team");
}

/* Results do not depend on sources that are changed as soon as the call has returned, and collective calls may follow
 * each other without synchronisation. Blocks of n words: small and large ones go different ways. */
enum { kSource, kBroadcast, kFcollect, kCollect, kAlltoall, kAlltoalls, kSum, kScan, kMax, kCalls };

/* Word i of what `pe` gives to a call. */
static long given(int call, int pe, size_t i) {
  return call * 1000000L + pe * 10000L + (long)(i % 7919);
}

static void give(int call, long* from, size_t words) {
  for (size_t i = 0; i < words; ++i) {
    from[i] = given(call, mine, i);
  }
}

static void test_in_a_row(size_t n) {
  const size_t words = 3 * n * (size_t)pes; /* enough for the strides of alltoalls */
  long* at[kCalls];
  for (int call = 0; call < kCalls; ++call) {
    at[call] = (long*)shmem_malloc(words * sizeof(long));
    EXPECT(at[call] != NULL, "there is memory");
  }
  long* from = at[kSource];
  for (int round = 0; round < pes + 2; ++round) {
    const int root = round % pes;
    shmem_team_sync(team); /* all have looked at the results of the last round */
    come_late(round);
    give(kBroadcast, from, words);
    EXPECT(shmem_long_broadcast(team, at[kBroadcast], from, n, root) == 0, "broadcast returns 0");
    give(kFcollect, from, words);
    EXPECT(shmem_long_fcollect(team, at[kFcollect], from, n) == 0, "fcollect returns 0");
    give(kCollect, from, words);
    EXPECT(shmem_long_collect(team, at[kCollect], from, n) == 0, "collect returns 0");
    give(kAlltoall, from, words);
    EXPECT(shmem_long_alltoall(team, at[kAlltoall], from, n) == 0, "alltoall returns 0");
    give(kAlltoalls, from, words);
    EXPECT(shmem_long_alltoalls(team, at[kAlltoalls], from, 2, 3, n) == 0, "alltoalls returns 0");
    give(kSum, from, words);
    EXPECT(shmem_long_sum_reduce(team, at[kSum], from, n) == 0, "sum_reduce returns 0");
    give(kScan, from, words);
    EXPECT(shmem_long_sum_inscan(team, at[kScan], from, n) == 0, "sum_inscan returns 0");
    give(kMax, from, words);
    EXPECT(shmem_long_max_reduce(team, at[kMax], from, n) == 0, "max_reduce returns 0");
    give(kSource, from, words);
    for (size_t i = 0; i < n; ++i) {
      long sum = 0, scan = 0;
      for (int pe = 0; pe < pes; ++pe) {
        const size_t block = (size_t)pe * n + i, to_me = (size_t)mine * n + i;
        sum += given(kSum, pe, i);
        scan += pe <= mine ? given(kScan, pe, i) : 0;
        EXPECT(at[kFcollect][block] == given(kFcollect, pe, i), "fcollect has read the source when it returns");
        EXPECT(at[kCollect][block] == given(kCollect, pe, i), "collect has read the source when it returns");
        EXPECT(at[kAlltoall][block] == given(kAlltoall, pe, to_me), "alltoall has read the source when it returns");
        EXPECT(at[kAlltoalls][2 * block] == given(kAlltoalls, pe, 3 * to_me), "alltoalls has read the source, too");
      }
      EXPECT(at[kBroadcast][i] == given(kBroadcast, root, i), "broadcast has read the source when it returns");
      EXPECT(at[kSum][i] == sum, "sum_reduce has read the source when it returns");
      EXPECT(at[kScan][i] == scan, "sum_inscan has read the source when it returns");
      EXPECT(at[kMax][i] == given(kMax, pes - 1, i), "max_reduce has read the source when it returns");
    }
  }
  for (int call = 0; call < kCalls; ++call) {
    shmem_free(at[call]);
  }
}

/* Section 4.2: dest and source may be in different symmetric memory. */
static void test_memory_of_all_kinds(void) {
  long* heap = (long*)shmem_calloc(kWords * kMostPes, sizeof(long));
  fill(kWords);
  EXPECT(shmem_long_fcollect(team, heap, source, 2) == 0 && heap[2 * pes - 1] == value(pes - 1, 1),
         "fcollect goes from a variable to the heap");
  EXPECT(shmem_long_sum_reduce(team, dest, heap, 2) == 0 && dest[1] == value(0, 1) * pes,
         "a reduction goes from the heap to a variable");
  EXPECT(shmem_team_sync(team) == 0 && shmem_long_broadcast(team, heap + 100, source, 3, 0) == 0 &&
             heap[102] == value(0, 2),
         "a broadcast goes from a variable to the heap");
  shmem_free(heap);
}

/* Annex C: no elements may come from, and go to, NULL. */
static void test_nothing(void) {
  EXPECT(shmem_long_broadcast(team, NULL, NULL, 0, 0) == 0, "a broadcast of nothing succeeds");
  EXPECT(shmem_long_collect(team, NULL, NULL, 0) == 0, "a collect of nothing succeeds");
  EXPECT(shmem_long_fcollect(team, NULL, NULL, 0) == 0, "an fcollect of nothing succeeds");
  EXPECT(shmem_long_alltoall(team, NULL, NULL, 0) == 0, "an alltoall of nothing succeeds");
  EXPECT(shmem_long_alltoalls(team, NULL, NULL, 1, 1, 0) == 0, "an alltoalls of nothing succeeds");
  EXPECT(shmem_long_sum_reduce(team, NULL, NULL, 0) == 0, "a reduction of nothing succeeds");
  EXPECT(shmem_long_sum_inscan(team, NULL, NULL, 0) == 0, "a scan of nothing succeeds");
}

/* Barriers: none returns early, and barrier_all and barrier complete transfers; stores are visible after sync_all. */
static void test_barriers(void) {
  static long come, word;
  static long psync[SHMEM_BARRIER_SYNC_SIZE]; /* SHMEM_SYNC_VALUE is 0 or set here */
  for (int i = 0; i < SHMEM_BARRIER_SYNC_SIZE; ++i) {
    psync[i] = SHMEM_SYNC_VALUE;
  }
  shmem_barrier_all();
  for (long round = 1; round <= 8 * pes; ++round) {
    come_late((int)round);
    shmem_long_atomic_inc(&come, 0);
    const int kind = (int)(round % 4);
    long* direct = (long*)shmem_ptr(&word, right());
    if (kind < 2 || direct == NULL) {
      shmem_long_put_nbi(&word, &round, 1, right());
    } else {
      *direct = round;
    }
    if (kind == 0) {
      shmem_barrier_all();
    } else if (kind == 1) {
      shmem_barrier(0, 0, pes, psync);
    } else {
      shmem_quiet();
      kind == 2 ? shmem_sync_all() : (void)shmem_team_sync(SHMEM_TEAM_WORLD);
    }
    EXPECT(shmem_long_atomic_fetch(&come, 0) >= round * pes, "no PE leaves before all have come");
    EXPECT(word == round, "transfers before a barrier, and stores before a sync, are visible after it");
    shmem_sync_all();
  }
}

/* Active sets (deprecated): PEs 1, 2, 3, ... or 1, 3, 5, ... */
static long psyncs[2][SHMEM_SYNC_SIZE];
static long work[kWords + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static void check_active_set(int log_stride) {
  const int stride = 1 << log_stride, size = (pes - 1 + stride - 1) / stride;
  if (me == 0 || (me - 1) % stride != 0) {
    return;
  }
  const int number = (me - 1) / stride;
#define SET 1, log_stride, size
  for (int i = 0; i < kWords * pes; ++i) {
    source[i] = value(number, i);
    dest[i] = -1;
  }
  shmem_barrier(SET, psyncs[0]);
  shmem_broadcast64(dest, source, 3, size - 1, SET, psyncs[0]);
  EXPECT(dest[2] == (number == size - 1 ? -1 : value(size - 1, 2)),
         "a broadcast in a set leaves the root's dest alone");
  shmem_sync(SET, psyncs[1]);
  shmem_fcollect64(dest, source, 2, SET, psyncs[0]);
  EXPECT(dest[2 * size - 1] == value(size - 1, 1), "fcollect concatenates by the order of the set");
  shmem_sync(SET, psyncs[1]);
  shmem_collect64(dest, source, (size_t)(number % 3), SET, psyncs[0]);
  int at = 0;
  for (int pe = 0; pe < size; ++pe) {
    for (int i = 0; i < pe % 3; ++i) {
      EXPECT(dest[at++] == value(pe, i), "collect concatenates what each PE of the set gives");
    }
  }
  shmem_sync(SET, psyncs[1]);
  shmem_alltoall64(dest, source, 2, SET, psyncs[0]);
  EXPECT(dest[2 * size - 1] == value(size - 1, 2 * number + 1), "alltoall exchanges within the set");
  shmem_sync(SET, psyncs[1]);
  shmem_alltoalls64(dest, source, 2, 3, 1, SET, psyncs[0]);
  EXPECT(dest[2 * (size - 1)] == value(size - 1, 3 * number), "alltoalls exchanges within the set");
  shmem_sync(SET, psyncs[1]);
  shmem_long_sum_to_all(dest, source, 4, SET, work, psyncs[0]);
  EXPECT(dest[3] == 1000L * size * (size - 1) / 2 + 3L * size, "a reduction adds the PEs of the set");
  shmem_sync(SET, psyncs[1]);
  shmem_long_sum_to_all(NULL, NULL, 0, SET, work, psyncs[0]); /* Annex C */
  shmem_barrier(SET, psyncs[1]);
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    EXPECT(psyncs[0][i] == SHMEM_SYNC_VALUE && psyncs[1][i] == SHMEM_SYNC_VALUE, "pSync is as it was before the call");
  }
}

static void test_active_sets(void) {
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    psyncs[0][i] = psyncs[1][i] = SHMEM_SYNC_VALUE;
  }
  for (int log_stride = 0; log_stride < 3; ++log_stride) {
    shmem_barrier_all();
    if (pes > 1) {
      check_active_set(log_stride);
    }
  }
  shmem_barrier_all();
}

PE_PART(conformance_collectives) {
  start();
  EXPECT(pes <= kMostPes, "this program is for up to 62 PEs");
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &team) == 0, "a team can be made");
  mine = pes - 1 - me;
  test_order_of_a_team();
  test_in_a_row(2);
  test_in_a_row(3000);
  test_memory_of_all_kinds();
  test_nothing();
  test_barriers();
  test_active_sets();
  shmem_team_destroy(team);
  shmem_finalize();
  return 0;
}
