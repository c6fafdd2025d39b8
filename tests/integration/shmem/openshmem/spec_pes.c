/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSHMEM 1.6 says in a sentence that is easily missed. spec_pes CASE: one case, or all that need none. */
#include "check.h"

/* Names that <complex.h> and programs use, which shmem.h must leave alone. */
static int I = 1, complex = 2;

static int me, pes;

/* Sections 6 and 7: handles may stand in initialisers. A team that programs set to NULL is invalid. */
static shmem_team_t teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID, NULL};
static shmem_ctx_t contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};

static void test_handles(void) {
  shmem_team_t none;
  memset(&none, 0, sizeof none);
  CHECK(teams[2] == NULL && teams[3] == SHMEM_TEAM_INVALID && none == SHMEM_TEAM_INVALID);
  CHECK(teams[0] != teams[1] && teams[0] != SHMEM_TEAM_INVALID && teams[1] != SHMEM_TEAM_INVALID);
  CHECK(shmem_team_n_pes(teams[0]) == pes && shmem_team_n_pes(teams[2]) == -1 && shmem_team_my_pe(none) == -1);
  CHECK(contexts[0] != contexts[1]);
  CHECK(shmem_team_split_strided(teams[0], 0, 1, 1, NULL, 0, &none) == 0 && (none == NULL) == (me != 0));
  if (none) {
    shmem_team_destroy(none);
  }
}

/* Section 9.1. */
static void test_name(void) {
  char name[SHMEM_MAX_NAME_LEN];
  memset(name, 'x', sizeof name);
  shmem_info_get_name(name);
  CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
  CHECK(I + complex == 3);
}

/* Section 9.3: allocation routines that have nothing to do return without a barrier, so one PE may call them alone. */
static void test_nothing_to_allocate(void) {
  if (me == pes - 1) {
    CHECK(shmem_malloc(0) == NULL && shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
    CHECK(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL && shmem_align(64, 0) == NULL);
    CHECK(shmem_align(0, 8) == NULL);
    CHECK(shmem_realloc(NULL, 0) == NULL && shmalloc(0) == NULL && shrealloc(NULL, 0) == NULL);
    CHECK(shmemalign(64, 0) == NULL);
    shmem_free(NULL);
    shfree(NULL);
  }
  shmem_barrier_all();
  void* block = shmem_malloc(8);
  CHECK(block != NULL && shmem_realloc(block, 0) == NULL);
}

/* Section 9.8: in C11 signals alone have a form with a context, under the same name. */
static void test_generic_signals(void) {
  static uint64_t signal;
  const int right = (me + 1) % pes;
  shmem_ctx_t ctx = SHMEM_CTX_INVALID;
  CHECK(shmem_ctx_create(0, &ctx) == 0);
  shmem_signal_set(ctx, &signal, 5, right);
  shmem_ctx_quiet(ctx);
  shmem_barrier_all();
  shmem_signal_add(ctx, &signal, 1, right);
  shmem_signal_add(SHMEM_CTX_DEFAULT, &signal, 1, right);
  shmem_signal_add(&signal, 1, right);
  CHECK(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 8) == 8);
  shmem_barrier_all();
  shmem_signal_set(&signal, 0, right);
  shmem_ctx_destroy(ctx);
  shmem_barrier_all();
}

/* Section 9.9: nothing is done for an invalid context, whatever the other arguments are. */
static void test_sessions(void) {
  shmem_ctx_session_start(SHMEM_CTX_INVALID, ~0L, NULL, ~0L);
  shmem_ctx_session_stop(SHMEM_CTX_INVALID);
  shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 1L << 20, NULL, 0); /* an option is a hint */
  shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
}

/* Section 9.4: a split fails on all PEs of the parent or on none. */
static void test_split_without_destination(void) {
  for (int wrong = 0; wrong < pes; ++wrong) {
    shmem_team_t team = SHMEM_TEAM_WORLD, row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, me == wrong ? NULL : &team) != 0);
    CHECK(me == wrong || team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &row, NULL, 0, me == wrong ? NULL : &column) != 0);
    CHECK(row == SHMEM_TEAM_INVALID && (me == wrong || column == SHMEM_TEAM_INVALID));
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, me == wrong ? NULL : &row, NULL, 0, &column) != 0);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team) == 0);
    shmem_team_sync(team);
    shmem_team_destroy(team);
  }
}

/* Values to compare with may be constants; short and unsigned short may be waited for, too. */
#define TEST_SEVERAL(NAME, TYPE)                                                                \
  static void test_several_##NAME(void) {                                                       \
    static TYPE words[3];                                                                       \
    static const TYPE values[3] = {7, 7, 7};                                                    \
    size_t indices[3];                                                                          \
    for (int i = 0; i < 3; ++i) {                                                               \
      shmem_p(words + i, (TYPE)7, (me + 1) % pes);                                              \
    }                                                                                           \
    shmem_wait_until_all(words, (size_t)3, NULL, SHMEM_CMP_EQ, (TYPE)7);                        \
    shmem_wait_until_all_vector(words, (size_t)3, NULL, SHMEM_CMP_EQ, values);                  \
    CHECK(shmem_wait_until_any(words, (size_t)3, NULL, SHMEM_CMP_NE, (TYPE)0) < 3);             \
    CHECK(shmem_wait_until_any_vector(words, (size_t)3, NULL, SHMEM_CMP_EQ, values) < 3);       \
    CHECK(shmem_wait_until_some(words, (size_t)3, indices, NULL, SHMEM_CMP_EQ, (TYPE)7));       \
    CHECK(shmem_wait_until_some_vector(words, (size_t)3, indices, NULL, SHMEM_CMP_EQ, values)); \
    CHECK(shmem_test_all(words, (size_t)3, NULL, SHMEM_CMP_EQ, (TYPE)7));                       \
    CHECK(shmem_test_all_vector(words, (size_t)3, NULL, SHMEM_CMP_EQ, values));                 \
    CHECK(shmem_test_any(words, (size_t)3, NULL, SHMEM_CMP_EQ, (TYPE)7) < 3);                   \
    CHECK(shmem_test_any_vector(words, (size_t)3, NULL, SHMEM_CMP_EQ, values) < 3);             \
    CHECK(shmem_test_some(words, (size_t)3, indices, NULL, SHMEM_CMP_EQ, (TYPE)7) == 3);        \
    CHECK(shmem_test_some_vector(words, (size_t)3, indices, NULL, SHMEM_CMP_EQ, values) == 3);  \
    shmem_barrier_all();                                                                        \
  }
TEST_SEVERAL(short, short)
TEST_SEVERAL(ushort, unsigned short)
TEST_SEVERAL(int, int)
TEST_SEVERAL(ulonglong, unsigned long long)

/* Complex numbers of C; in C++ these have overloads, and C++'s are the routines' own. */
static void test_complex(void) {
  __extension__ static float _Complex mine[2], sum[2];
  __extension__ static double _Complex large, product;
  static long psync[SHMEM_REDUCE_SYNC_SIZE];
  mine[1] = 2;
  large = 2;
  shmem_barrier_all();
  CHECK(shmem_complexf_sum_reduce(SHMEM_TEAM_WORLD, sum, mine, 2) == 0);
  CHECK(sum[0] == 0 && sum[1] == 2 * (float)pes);
  CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, sum, mine, (size_t)2) == 0 && sum[1] == 2 * (float)pes);
  shmem_complexd_prod_to_all(&product, &large, 1, 0, 0, pes, &large, psync);
  CHECK(product == (double)(1 << pes));
#ifdef __cplusplus
  static std::complex<double> a, b;
  a = 1;
  shmem_barrier_all();
  CHECK(shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &b, &a, 1) == 0 && b.real() == pes);
#endif
  shmem_barrier_all();
}

/* Undefined in the specification, but other implementations let it pass. */
static void tolerated(void) {
  char* block = (char*)shmem_malloc(256);
  shmem_free(block + 64);
  block[0] = 1; /* still allocated */
  char* aligned = (char*)shmem_align(63, 10);
  CHECK(aligned != NULL && (uintptr_t)aligned % 64 == 0);
  shmem_free(aligned);
  aligned = (char*)shmem_align(1000, 10);
  CHECK(aligned != NULL && (uintptr_t)aligned % 1024 == 0);
  shmem_free(aligned);
  /* PEs outside the active set, which is PE 0 alone. */
  static long psync[SHMEM_COLLECT_SYNC_SIZE], work[SHMEM_REDUCE_MIN_WRKDATA_SIZE], sum, one = 1;
  psync[SHMEM_COLLECT_SYNC_SIZE - 1] = SHMEM_SYNC_VALUE;
  shmem_long_sum_to_all(&sum, &one, 1, 0, 0, 1, work, psync);
  CHECK(sum == (me == 0 ? 1 : 0));
  shmem_collect64(&sum, &one, 1, 0, 0, 1, psync);
  (shmem_barrier)(0, 0, 1, psync);
  /* Words that are not aligned. */
  const long value = 0x0102030405060708;
  shmem_barrier_all();
  memset(block, 0, 256);
  shmem_barrier_all();
  shmem_putmem(block + 9, &value, sizeof value, (me + 1) % pes);
  long* word = (long*)(void*)(block + 9);
  shmem_long_wait_until(word, SHMEM_CMP_EQ, value);
  CHECK(shmem_long_test(word, SHMEM_CMP_GE, value) && !shmem_long_test(word, SHMEM_CMP_LT, value));
  shmem_barrier_all();
  shmem_free(block);
}

static void say_goodbye(void) {
  printf("exit handler of PE %d\n", me);
}

/* Section 9.1: I/O is flushed and resources are released as at a normal end of the program. */
static int global_exit(void) {
  atexit(say_goodbye);
  shmem_barrier_all();
  printf("not flushed by PE %d; ", me);
  if (me == pes - 1) {
    shmem_global_exit(7); /* no return statement is missing after this */
  }
  for (;;) {
    shmem_barrier_all();
  }
}

/* Section 9.2: an error is returned. */
static int failing_start(void) {
  int provided = -1;
  if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0) {
    return 1;
  }
  int initialized = -1;
  shmem_query_initialized(&initialized);
  printf("shmem_init_thread has returned, %d\n", initialized);
  return initialized;
}

PE_PART(spec) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "failing-start") == 0) {
    return failing_start();
  }
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  if (strcmp(what, "global-exit") == 0) {
    return global_exit();
  }
  if (strcmp(what, "tolerated") == 0) {
    tolerated();
  } else if (strcmp(what, "start") != 0) {
    test_handles();
    test_name();
    test_nothing_to_allocate();
    test_generic_signals();
    test_sessions();
    test_split_without_destination();
    test_several_short();
    test_several_ushort();
    test_several_int();
    test_several_ulonglong();
    test_complex();
  }
  shmem_finalize();
  return 0;
}
