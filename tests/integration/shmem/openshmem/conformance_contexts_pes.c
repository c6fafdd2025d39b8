/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 9.5 and 9.9: contexts that number the PEs of their team, failures, threads, sessions. */
#include "conformance_check.h"

enum { kWords = 40 };
static long words[kWords];
static uint64_t signal_word;

static shmem_team_t team; /* all PEs, the last first */
static shmem_ctx_t ctx;   /* of this team */
static int mine, next, before;

static void quiet_and_sync(void) {
  shmem_ctx_quiet(ctx);
  shmem_sync_all();
}

static void expect_words(long value, size_t from, size_t count, const char* expected) {
  quiet_and_sync();
  for (size_t i = from; i < from + count; ++i) {
    EXPECT(words[i] == value, expected);
  }
  quiet_and_sync();
}

/* Every kind of call counts PEs as the context's team does: each PE works on its next one in the team. */
static void test_numbers_of_puts(void) {
  long source[8];
  for (int i = 0; i < 8; ++i) {
    source[i] = mine + 100;
  }
  const long came = before + 100;
  shmem_ctx_long_p(ctx, words, source[0], next);
  expect_words(came, 0, 1, "shmem_ctx_long_p counts in the team");
  shmem_ctx_long_put(ctx, words + 1, source, 4, next);
  expect_words(came, 1, 4, "shmem_ctx_long_put counts in the team");
  shmem_ctx_putmem(ctx, words + 5, source, 2 * sizeof(long), next);
  expect_words(came, 5, 2, "shmem_ctx_putmem counts in the team");
  shmem_ctx_put64_nbi(ctx, words + 7, source, 8, next);
  expect_words(came, 7, 8, "shmem_ctx_put64_nbi counts in the team");
  shmem_ctx_long_iput(ctx, words + 15, source, 1, 2, 3, next);
  expect_words(came, 15, 3, "shmem_ctx_long_iput counts in the team");
  shmem_ctx_long_ibput(ctx, words + 18, source, 2, 2, 2, 2, next);
  expect_words(came, 18, 4, "shmem_ctx_long_ibput counts in the team");
  shmem_ctx_long_put_signal(ctx, words + 22, source, 2, &signal_word, 7, SHMEM_SIGNAL_SET, next);
  shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 7);
  expect_words(came, 22, 2, "shmem_ctx_long_put_signal counts in the team");
  shmem_ctx_long_put_signal_nbi(ctx, words + 24, source, 2, &signal_word, 1, SHMEM_SIGNAL_ADD, next);
  shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 8);
  expect_words(came, 24, 2, "shmem_ctx_long_put_signal_nbi counts in the team");
  shmem_ctx_signal_add(ctx, &signal_word, (uint64_t)mine, next);
  quiet_and_sync();
  EXPECT(signal_word == 8 + (uint64_t)before, "shmem_ctx_signal_add counts in the team");
  quiet_and_sync();
  shmem_ctx_signal_set(ctx, &signal_word, (uint64_t)mine, next);
  quiet_and_sync();
  EXPECT(signal_word == (uint64_t)before, "shmem_ctx_signal_set counts in the team");
  shmem_ctx_pe_quiet(ctx, &next, 1);
  shmem_ctx_fence(ctx);
  quiet_and_sync();
}

static void test_numbers_of_gets(void) {
  long dest[8];
  for (int i = 0; i < kWords; ++i) {
    words[i] = mine * 1000 + i;
  }
  quiet_and_sync();
  const long there = (long)next * 1000;
  EXPECT(shmem_ctx_long_g(ctx, words + 3, next) == there + 3, "shmem_ctx_long_g counts in the team");
  shmem_ctx_long_get(ctx, dest, words, 8, next);
  EXPECT(dest[7] == there + 7, "shmem_ctx_long_get counts in the team");
  shmem_ctx_getmem(ctx, dest, words + 8, sizeof dest, next);
  EXPECT(dest[7] == there + 15, "shmem_ctx_getmem counts in the team");
  shmem_ctx_long_get_nbi(ctx, dest, words + 1, 8, next);
  shmem_ctx_quiet(ctx);
  EXPECT(dest[7] == there + 8, "shmem_ctx_long_get_nbi counts in the team");
  shmem_ctx_long_iget(ctx, dest, words, 2, 3, 4, next);
  EXPECT(dest[6] == there + 9, "shmem_ctx_long_iget counts in the team");
  shmem_ctx_long_ibget(ctx, dest, words, 2, 4, 2, 3, next);
  EXPECT(dest[5] == there + 9, "shmem_ctx_long_ibget counts in the team");
  quiet_and_sync();
}

static void test_numbers_of_atomics(void) {
  long* word = words;
  long fetched = -1;
  *word = mine;
  quiet_and_sync();
  EXPECT(shmem_ctx_long_atomic_fetch(ctx, word, next) == next, "shmem_ctx_long_atomic_fetch counts in the team");
  quiet_and_sync();
  EXPECT(shmem_ctx_long_atomic_fetch_add(ctx, word, 100, next) == next, "atomic_fetch_add counts in the team");
  shmem_ctx_long_atomic_add(ctx, word, 100, next);
  shmem_ctx_long_atomic_inc(ctx, word, next);
  shmem_ctx_quiet(ctx);
  EXPECT(shmem_ctx_long_atomic_fetch_inc(ctx, word, next) == next + 201, "atomic_fetch_inc counts in the team");
  EXPECT(shmem_ctx_long_atomic_compare_swap(ctx, word, next + 202, 5, next) == next + 202,
         "atomic_compare_swap counts in the team");
  EXPECT(shmem_ctx_long_atomic_swap(ctx, word, 6, next) == 5, "atomic_swap counts in the team");
  shmem_ctx_long_atomic_set(ctx, word, mine, next);
  shmem_ctx_quiet(ctx);
  shmem_ctx_long_atomic_fetch_nbi(ctx, &fetched, word, next);
  quiet_and_sync();
  EXPECT(fetched == mine && *word == before, "atomic_set and atomic_fetch_nbi count in the team");
  uint64_t* bits = (uint64_t*)(void*)(words + 1);
  *bits = 0;
  quiet_and_sync();
  shmem_ctx_uint64_atomic_or(ctx, bits, 6, next);
  shmem_ctx_quiet(ctx);
  EXPECT(shmem_ctx_uint64_atomic_fetch_and(ctx, bits, 2, next) == 6, "bitwise atomics count in the team");
  EXPECT(shmem_ctx_uint64_atomic_fetch_xor(ctx, bits, 1, next) == 2, "bitwise atomics count in the team");
  quiet_and_sync();
  EXPECT(*bits == 3, "bitwise atomics change the PE that the team numbers so");
  quiet_and_sync();
}

/* shmem_ctx_destroy completes what was done on the context, also if that takes a while. */
static void test_destroy_is_quiet(void) {
  enum { kMany = 100000 };
  long* data = (long*)shmem_calloc(2 * kMany, sizeof(long));
  EXPECT(data != NULL, "there is memory");
  long* source = data + kMany;
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < kMany; ++i) {
      source[i] = round;
    }
    shmem_ctx_t short_lived;
    EXPECT(shmem_ctx_create(SHMEM_CTX_PRIVATE, &short_lived) == 0, "a context can be made");
    shmem_ctx_long_put_nbi(short_lived, data, source, kMany, right());
    shmem_ctx_destroy(short_lived);
    shmem_sync_all();
    EXPECT(data[0] == round && data[kMany - 1] == round, "shmem_ctx_destroy completes the transfers of the context");
    shmem_sync_all();
  }
  shmem_free(data);
}

/* A creation that fails gives SHMEM_CTX_INVALID and does no harm; it may succeed later. */
static void test_too_many(void) {
  enum { kMost = 6000 };
  static shmem_ctx_t made[kMost];
  int count = 0, result = 0;
  while (count < kMost && result == 0) {
    made[count] = SHMEM_CTX_DEFAULT;
    result = shmem_ctx_create(0, &made[count]);
    EXPECT((result == 0) == (made[count] != SHMEM_CTX_INVALID), "a context is valid if and only if the result is 0");
    count += result == 0 ? 1 : 0;
  }
  EXPECT(count > 0, "there can be contexts");
  shmem_ctx_long_p(made[count - 1], words, 3, right());
  shmem_ctx_quiet(made[count - 1]);
  shmem_sync_all();
  EXPECT(words[0] == 3, "contexts work after one could not be made");
  shmem_ctx_destroy(made[--count]);
  EXPECT(shmem_ctx_create(0, &made[count]) == 0, "a context can be made when there is room again");
  while (count >= 0) {
    shmem_ctx_destroy(made[count--]);
  }
  shmem_sync_all();
}

static void* add_by(void* shared) {
  for (int i = 0; i < 500; ++i) {
    shmem_ctx_long_atomic_add(*(shmem_ctx_t*)shared, words + 2, 1, 0);
  }
  return NULL;
}

/* A shareable context may be used by several threads at once. */
static void test_threads_share_a_context(void) {
  enum { kThreads = 4 };
  words[2] = 0;
  shmem_ctx_t shared;
  EXPECT(shmem_ctx_create(0, &shared) == 0, "a context can be made");
  shmem_sync_all();
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(pthread_create(&threads[i], NULL, add_by, &shared) == 0, "a thread can be started");
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
  }
  shmem_ctx_quiet(shared);
  shmem_sync_all();
  EXPECT(shmem_ctx_long_g(shared, words + 2, 0) == 500L * kThreads * pes, "no thread's operation is lost");
  shmem_sync_all();
  shmem_ctx_destroy(shared);
}

/* Sessions are hints: the results are the same, whatever they say, and repeated starts add options. */
static void test_sessions(void) {
  static const size_t counts[] = {0, 1, SIZE_MAX};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    shmem_ctx_session_config_t config;
    config.total_ops = counts[i];
    shmem_ctx_session_start(ctx, 0, NULL, 0);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    for (int k = 0; k < 10; ++k) {
      shmem_ctx_long_p(ctx, words + k, mine * 100 + k, next);
    }
    EXPECT(shmem_ctx_long_atomic_fetch_inc(ctx, words + 20 + i, next) >= 0, "atomics give results in a session");
    shmem_ctx_fence(ctx);
    shmem_ctx_long_p(ctx, words + 10, 1, next);
    shmem_long_wait_until(words + 10, SHMEM_CMP_EQ, 1);
    for (int k = 0; k < 10; ++k) {
      EXPECT(words[k] == before * 100L + k, "a fence orders puts in a session");
    }
    shmem_ctx_session_stop(ctx);
    shmem_ctx_session_stop(ctx); /* which has no effect */
    quiet_and_sync();
    words[10] = 0;
    quiet_and_sync();
  }
}

PE_PART(conformance_contexts) {
  int provided = -1;
  EXPECT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE,
         "several threads may make calls");
  me = shmem_my_pe();
  pes = shmem_n_pes();
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &team) == 0, "a team can be made");
  EXPECT(shmem_team_create_ctx(team, 0, &ctx) == 0, "a context of a team can be made");
  shmem_team_t of_ctx = SHMEM_TEAM_INVALID;
  EXPECT(shmem_ctx_get_team(ctx, &of_ctx) == 0 && of_ctx == team, "a context tells the team that it was made from");
  mine = pes - 1 - me;
  next = (mine + 1) % pes;
  before = (mine + pes - 1) % pes;
  shmem_barrier_all();
  test_numbers_of_puts();
  test_numbers_of_gets();
  test_numbers_of_atomics();
  test_destroy_is_quiet();
  test_too_many();
  test_threads_share_a_context();
  test_sessions();
  shmem_ctx_destroy(ctx);
  shmem_team_destroy(team);
  shmem_finalize();
  return 0;
}
