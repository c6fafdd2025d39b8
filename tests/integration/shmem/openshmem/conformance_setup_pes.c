/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 5, 6, 7, 9.1 and 9.2: headers, constants, start, threads, end. Arguments name ways to end. */
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <pshmem.h>
#include <shmemx.h>
#include <time.h>

#include "conformance_check.h"

#ifdef __cplusplus
#define AT_COMPILE_TIME(condition, expected) static_assert(condition, expected)
#else
#define AT_COMPILE_TIME(condition, expected) _Static_assert(condition, expected)
#endif

/* Section 6: constants are known at compile time. */
AT_COMPILE_TIME(SHMEM_MAJOR_VERSION == 1 && SHMEM_MINOR_VERSION == 6, "the version is 1.6");
AT_COMPILE_TIME(sizeof(SHMEM_VENDOR_STRING) <= SHMEM_MAX_NAME_LEN, "a buffer of SHMEM_MAX_NAME_LEN has room");
AT_COMPILE_TIME((SHMEM_CTX_SERIALIZED & SHMEM_CTX_PRIVATE) == 0 && (SHMEM_CTX_PRIVATE & SHMEM_CTX_NOSTORE) == 0 &&
                    (SHMEM_CTX_NOSTORE & SHMEM_CTX_SERIALIZED) == 0,
                "options of contexts are different bits");
AT_COMPILE_TIME(SHMEM_CTX_SERIALIZED != 0 && SHMEM_CTX_PRIVATE != 0 && SHMEM_CTX_NOSTORE != 0, "options are not 0");
AT_COMPILE_TIME((SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE) == 0 && SHMEM_MALLOC_ATOMICS_REMOTE != 0 &&
                    SHMEM_MALLOC_SIGNAL_REMOTE != 0,
                "hints of memory are different bits");
AT_COMPILE_TIME(SHMEM_SIGNAL_SET != SHMEM_SIGNAL_ADD, "operations of signals differ");
AT_COMPILE_TIME(SHMEM_TEAM_NUM_CONTEXTS != 0 && SHMEM_CTX_SESSION_TOTAL_OPS != 0 && SHMEM_CTX_SESSION_BATCH != 0,
                "masks and options are not 0");
AT_COMPILE_TIME(SHMEM_SYNC_SIZE >= SHMEM_BARRIER_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_BCAST_SYNC_SIZE &&
                    SHMEM_SYNC_SIZE >= SHMEM_COLLECT_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_REDUCE_SYNC_SIZE &&
                    SHMEM_SYNC_SIZE >= SHMEM_ALLTOALL_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_ALLTOALLS_SYNC_SIZE,
                "SHMEM_SYNC_SIZE is enough for every collective call");
AT_COMPILE_TIME(SHMEM_REDUCE_MIN_WRKDATA_SIZE > 0, "an array can have SHMEM_REDUCE_MIN_WRKDATA_SIZE elements");
/* Deprecated since 1.3, and still to be supported. */
AT_COMPILE_TIME(_SHMEM_MAJOR_VERSION == SHMEM_MAJOR_VERSION && _SHMEM_MINOR_VERSION == SHMEM_MINOR_VERSION &&
                    _SHMEM_MAX_NAME_LEN == SHMEM_MAX_NAME_LEN && sizeof(_SHMEM_VENDOR_STRING) > 0,
                "old names of the version");
AT_COMPILE_TIME(_SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_CMP_NE == SHMEM_CMP_NE && _SHMEM_CMP_GT == SHMEM_CMP_GT &&
                    _SHMEM_CMP_GE == SHMEM_CMP_GE && _SHMEM_CMP_LT == SHMEM_CMP_LT && _SHMEM_CMP_LE == SHMEM_CMP_LE,
                "old names of comparisons");
AT_COMPILE_TIME(_SHMEM_SYNC_VALUE == SHMEM_SYNC_VALUE && _SHMEM_BARRIER_SYNC_SIZE == SHMEM_BARRIER_SYNC_SIZE &&
                    _SHMEM_BCAST_SYNC_SIZE == SHMEM_BCAST_SYNC_SIZE &&
                    _SHMEM_COLLECT_SYNC_SIZE == SHMEM_COLLECT_SYNC_SIZE &&
                    _SHMEM_REDUCE_SYNC_SIZE == SHMEM_REDUCE_SYNC_SIZE &&
                    _SHMEM_REDUCE_MIN_WRKDATA_SIZE == SHMEM_REDUCE_MIN_WRKDATA_SIZE,
                "old names of work arrays");

/* Section 7: handles may stand in initialisers. */
static const shmem_team_t initial_teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
static const shmem_ctx_t initial_ctxs[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};

static void* ask(void* answer) {
  shmem_query_initialized((int*)answer);
  return NULL;
}

/* Section 9.1: it may be asked at any time and by any thread, whatever the level is. */
static int initialized_says_a_thread(void) {
  int answer = -1;
  in_another_thread(ask, &answer);
  return answer;
}

static void test_levels(void) {
  static const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED,
                               SHMEM_THREAD_MULTIPLE};
  for (int i = 0; i < 4; ++i) {
    int provided = -1, told = -2;
    EXPECT(shmem_init_thread(levels[i], &provided) == 0, "shmem_init_thread succeeds with each level");
    shmem_query_thread(&told);
    EXPECT(told == provided, "shmem_query_thread tells the level that shmem_init_thread provided");
    EXPECT(provided >= levels[i] && provided <= SHMEM_THREAD_MULTIPLE, "all levels are provided");
    EXPECT(initialized_says_a_thread() != 0, "another thread sees that the library runs");
    shmem_finalize();
    EXPECT(initialized_says_a_thread() == 0, "another thread sees that the library has ended");
  }
}

static void test_handles(void) {
  EXPECT(initial_teams[0] == SHMEM_TEAM_WORLD && initial_teams[2] == SHMEM_TEAM_INVALID, "handles can be compared");
  EXPECT(initial_teams[0] != initial_teams[1] && initial_teams[0] != initial_teams[2], "handles of teams differ");
  EXPECT(initial_ctxs[0] == SHMEM_CTX_DEFAULT && initial_ctxs[0] != initial_ctxs[1], "handles of contexts differ");
  EXPECT(shmem_team_n_pes(initial_teams[0]) == pes, "an initialised handle is good after the start");
}

/* Section 4: numbers are unique, and all PEs know the same number of PEs. */
static void test_numbers(void) {
  static int taken[64], count;
  EXPECT(me >= 0 && me < pes && pes <= 64, "the PE's number is one of 0 to n - 1");
  count = pes;
  shmem_int_atomic_inc(&taken[me], 0);
  shmem_barrier_all();
  for (int pe = 0; pe < pes; ++pe) {
    EXPECT(shmem_int_g(&taken[pe], 0) == 1, "each number belongs to one PE");
    EXPECT(shmem_int_g(&count, pe) == pes, "all PEs have the same shmem_n_pes()");
  }
  shmem_barrier_all();
}

/* Section 9.1: the last shmem_finalize completes transfers and destroys teams and shareable contexts. */
static void test_end(void) {
  static long word;
  for (long round = 1; round <= 3; ++round) {
    start();
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID, of_team = SHMEM_CTX_INVALID;
    EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &team) == 0, "a team can be made");
    EXPECT(shmem_ctx_create(0, &ctx) == 0 && shmem_team_create_ctx(team, 0, &of_team) == 0, "contexts can be made");
    come_late((int)round);
    shmem_ctx_long_put_nbi(ctx, &word, &round, 1, right());
    shmem_finalize();
    EXPECT(word == round, "shmem_finalize returns when the other PEs' puts have arrived");
  }
}

/* start_pes (deprecated): its argument is not used, and it needs no shmem_finalize. */
static void test_start_pes(int pes_before) {
  start_pes(1000);
  me = shmem_my_pe();
  pes = shmem_n_pes();
  EXPECT(pes == pes_before && _num_pes() == pes && _my_pe() == me, "start_pes(1000) starts the PEs that there are");
  shmem_barrier_all();
}

/* All PEs end the job, each with a status of its own. */
static void end_by_each(void) {
  shmem_barrier_all();
  shmem_global_exit(10 + me);
}

/* PE 0 ends the job with unfinished output; the others make no calls meanwhile. */
static void end_busy_pes(void) {
  shmem_barrier_all();
  if (me == 0) {
    printf("output without an end of line");
    shmem_global_exit(7);
  }
  const time_t limit = time(NULL) + 60;
  while (time(NULL) < limit) {
  }
  exit(8);
}

PE_PART(conformance_setup) {
  if (argc > 1) {
    start();
    strcmp(argv[1], "each") == 0 ? end_by_each() : end_busy_pes();
    return 9;
  }
  EXPECT(initialized_says_a_thread() == 0, "the library does not run before shmem_init");
  test_levels();
  start();
  test_handles();
  test_numbers();
  pshmem_pcontrol(1);
  shmem_pcontrol(-1);
  const int pes_before = pes;
  shmem_finalize();
  test_end();
  test_start_pes(pes_before);
  return 0;
}
