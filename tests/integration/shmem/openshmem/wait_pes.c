/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 9.8, 9.11 and 9.13: waits and tests of every type, puts with signals, locks. */
#include <unistd.h>

#include "check.h"

static shmem_ctx_t ctx;

enum { kWords = 5 };

/* Words 0 to 4 of the right neighbour become 10 to 14, the last first. */
#define TELL(NAME, TYPE)                                             \
  do {                                                               \
    shmem_barrier_all();                                             \
    for (int i = 0; i < kWords; ++i) words[i] = 0;                   \
    shmem_barrier_all();                                             \
    for (int i = kWords - 1; i >= 0; --i) {                          \
      shmem_##NAME##_atomic_set(words + i, (TYPE)(10 + i), right()); \
    }                                                                \
  } while (0)

#define TEST_WAIT(NAME, TYPE)                                                                                   \
  static void test_wait_##NAME(void* dest_memory, void* source_memory) {                                        \
    TYPE* words = (TYPE*)dest_memory;                                                                           \
    TYPE values[kWords] = {10, 11, 12, 13, 14};                                                                 \
    TYPE never[kWords] = {1, 1, 1, 1, 1};                                                                       \
    const int all_out[kWords] = {1, 1, 1, 1, 1};                                                                \
    const int but_two[kWords] = {1, 1, 0, 1, 0};                                                                \
    size_t indices[kWords];                                                                                     \
    (void)source_memory;                                                                                        \
    TELL(NAME, TYPE);                                                                                           \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_EQ, 10);                                                         \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_NE, 0);                                                          \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_GT, 9);                                                          \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_GE, 10);                                                         \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_LT, 11);                                                         \
    shmem_##NAME##_wait_until(words, SHMEM_CMP_LE, 10);                                                         \
    CHECK(shmem_##NAME##_test(words, SHMEM_CMP_EQ, 10) == 1);                                                   \
    CHECK(shmem_##NAME##_test(words, SHMEM_CMP_LT, 10) == 0);                                                   \
    TELL(NAME, TYPE);                                                                                           \
    shmem_##NAME##_wait_until_all(words, kWords, NULL, SHMEM_CMP_GE, 10);                                       \
    for (int i = 0; i < kWords; ++i) CHECK(words[i] == (TYPE)(10 + i));                                         \
    CHECK(shmem_##NAME##_test_all(words, kWords, NULL, SHMEM_CMP_GE, 10) == 1);                                 \
    CHECK(shmem_##NAME##_test_all(words, kWords, NULL, SHMEM_CMP_GE, 11) == 0);                                 \
    CHECK(shmem_##NAME##_test_all(words, kWords, but_two, SHMEM_CMP_GE, 11) == 1);                              \
    CHECK(shmem_##NAME##_test_all(words, kWords, all_out, SHMEM_CMP_EQ, 1) == 1);                               \
    CHECK(shmem_##NAME##_test_all_vector(words, kWords, NULL, SHMEM_CMP_EQ, values) == 1);                      \
    CHECK(shmem_##NAME##_test_all_vector(words, kWords, NULL, SHMEM_CMP_EQ, never) == 0);                       \
    CHECK(shmem_##NAME##_test_any(words, kWords, NULL, SHMEM_CMP_EQ, 13) == 3);                                 \
    CHECK(shmem_##NAME##_test_any(words, kWords, NULL, SHMEM_CMP_EQ, 1) == SIZE_MAX);                           \
    CHECK(shmem_##NAME##_test_any(words, kWords, all_out, SHMEM_CMP_GE, 1) == SIZE_MAX);                        \
    const size_t either = shmem_##NAME##_test_any_vector(words, kWords, but_two, SHMEM_CMP_EQ, values);         \
    CHECK(either < kWords && but_two[either] == 0);                                                             \
    CHECK(shmem_##NAME##_test_some(words, kWords, indices, but_two, SHMEM_CMP_GE, 11) == 2);                    \
    CHECK(shmem_##NAME##_test_some_vector(words, kWords, indices, NULL, SHMEM_CMP_EQ, never) == 0);             \
    TELL(NAME, TYPE);                                                                                           \
    shmem_##NAME##_wait_until_all_vector(words, kWords, NULL, SHMEM_CMP_EQ, values);                            \
    TELL(NAME, TYPE);                                                                                           \
    CHECK(shmem_##NAME##_wait_until_any(words, kWords, but_two, SHMEM_CMP_EQ, 12) == 2);                        \
    CHECK(shmem_##NAME##_wait_until_any(words, kWords, all_out, SHMEM_CMP_EQ, 12) == SIZE_MAX);                 \
    CHECK(shmem_##NAME##_wait_until_any(words, 0, NULL, SHMEM_CMP_EQ, 12) == SIZE_MAX);                         \
    CHECK(shmem_##NAME##_wait_until_any_vector(words, kWords, but_two, SHMEM_CMP_EQ, values) != SIZE_MAX);      \
    TELL(NAME, TYPE);                                                                                           \
    int done[kWords] = {0, 0, 0, 0, 0};                                                                         \
    for (size_t found = 0; found < kWords;) {                                                                   \
      const size_t more = shmem_##NAME##_wait_until_some(words, kWords, indices, done, SHMEM_CMP_NE, 0);        \
      CHECK(more > 0);                                                                                          \
      for (size_t i = 0; i < more; ++i) done[indices[i]] = 1;                                                   \
      found += more;                                                                                            \
    }                                                                                                           \
    CHECK(shmem_##NAME##_wait_until_some(words, kWords, indices, done, SHMEM_CMP_NE, 0) == 0);                  \
    CHECK(shmem_##NAME##_wait_until_some_vector(words, kWords, indices, NULL, SHMEM_CMP_EQ, values) == kWords); \
    CHECK(indices[0] == 0 && indices[kWords - 1] == kWords - 1);                                                \
    shmem_barrier_all();                                                                                        \
  }
SHMEM_AMO_TYPES(TEST_WAIT)

/* Generic and deprecated names. */
static void test_names(void) {
  static long word;
  static int number;
  static short small;
  static unsigned short big;
  static long long large;
  shmem_p(&word, 1L, right());
  shmem_p(&number, 1, right());
  shmem_p(&small, (short)1, right());
  shmem_p(&big, (unsigned short)1, right());
  shmem_p(&large, 1LL, right());
  shmem_long_wait(&word, 0);
  shmem_int_wait(&number, 0);
  shmem_short_wait(&small, 0);
  shmem_longlong_wait(&large, 0);
  shmem_wait(&word, 0L);
  shmem_wait_until(&word, SHMEM_CMP_EQ, 1L);
  (shmem_wait)(&word, 0);
  (shmem_wait_until)(&word, SHMEM_CMP_EQ, 1);
  shmem_short_wait_until(&small, SHMEM_CMP_EQ, 1);
  shmem_ushort_wait_until(&big, SHMEM_CMP_EQ, 1);
  CHECK(shmem_ushort_test(&big, SHMEM_CMP_EQ, 1) && shmem_short_test(&small, SHMEM_CMP_GE, 1));
  shmem_wait_until(&number, SHMEM_CMP_EQ, 1);
  CHECK(shmem_test(&large, SHMEM_CMP_EQ, 1LL));
  CHECK(shmem_test_all(&number, (size_t)1, (const int*)NULL, SHMEM_CMP_EQ, 1));
  shmem_barrier_all();
}

/* Section 9.11: a series of calls returns each element that satisfies the condition. */
static void test_any_returns_each(void) {
  enum { kCalls = 4, kSeries = 1000 };
  static long words[kWords];
  long values[kWords];
  int seen[kCalls][kWords];
  memset(seen, 0, sizeof seen);
  for (int i = 0; i < kWords; ++i) {
    words[i] = values[i] = 1;
  }
  for (int i = 0; i < kSeries; ++i) {
    ++seen[0][shmem_long_wait_until_any(words, kWords, NULL, SHMEM_CMP_GT, 0)];
    ++seen[1][shmem_long_wait_until_any_vector(words, kWords, NULL, SHMEM_CMP_EQ, values)];
    ++seen[2][shmem_long_test_any(words, kWords, NULL, SHMEM_CMP_GT, 0)];
    ++seen[3][shmem_long_test_any_vector(words, kWords, NULL, SHMEM_CMP_EQ, values)];
  }
  for (int call = 0; call < kCalls; ++call) {
    for (int i = 0; i < kWords; ++i) {
      CHECK(seen[call][i] > 0);
    }
  }
}

#define CHECK_SIGNAL(TYPE, put)                                                                 \
  do {                                                                                          \
    shmem_barrier_all();                                                                        \
    for (size_t i = 0; i < 9; ++i) source[i] = (TYPE)pattern(shmem_my_pe() + (int)round, i);    \
    put;                                                                                        \
    ++round;                                                                                    \
    CHECK(shmem_signal_wait_until(signal_word, SHMEM_CMP_GE, round) == round);                  \
    for (size_t i = 0; i < 9; ++i) CHECK(dest[i] == (TYPE)pattern(left() + (int)round - 1, i)); \
  } while (0)
#define TEST_SIGNAL_BODY(TYPE, name, count)                                                                           \
  TYPE* dest = (TYPE*)dest_memory;                                                                                    \
  TYPE* source = (TYPE*)source_memory;                                                                                \
  uint64_t* signal_word = (uint64_t*)((char*)dest_memory + kBytes - 64);                                              \
  uint64_t round = 0;                                                                                                 \
  CHECK_SIGNAL(TYPE, shmem_##name##_signal(dest, source, count, signal_word, 1, SHMEM_SIGNAL_ADD, right()));          \
  CHECK_SIGNAL(TYPE, shmem_##name##_signal(dest, source, count, signal_word, 2, SHMEM_SIGNAL_SET, right()));          \
  CHECK_SIGNAL(TYPE, shmem_ctx_##name##_signal(ctx, dest, source, count, signal_word, 1, SHMEM_SIGNAL_ADD, right())); \
  CHECK_SIGNAL(TYPE, shmem_##name##_signal_nbi(dest, source, count, signal_word, 1, SHMEM_SIGNAL_ADD, right()));      \
  CHECK_SIGNAL(TYPE,                                                                                                  \
               shmem_ctx_##name##_signal_nbi(ctx, dest, source, count, signal_word, 5, SHMEM_SIGNAL_SET, right()));   \
  CHECK(shmem_signal_fetch(signal_word) == 5);                                                                        \
  shmem_barrier_all()
#define TEST_SIGNAL(NAME, TYPE)                                            \
  static void test_signal_##NAME(void* dest_memory, void* source_memory) { \
    TEST_SIGNAL_BODY(TYPE, NAME##_put, 9);                                 \
  }
SHMEM_RMA_TYPES(TEST_SIGNAL)
#define TEST_SIGNAL_SIZE(BITS, BYTES)                                           \
  static void test_signal_size_##BITS(void* dest_memory, void* source_memory) { \
    TEST_SIGNAL_BODY(char, put##BITS, 9);                                       \
  }
SHMEM_SIZES(TEST_SIGNAL_SIZE)
static void test_signal_bytes(void* dest_memory, void* source_memory) {
  TEST_SIGNAL_BODY(char, putmem, 9);
  shmem_put_signal(dest, source, 9, signal_word, 1, SHMEM_SIGNAL_ADD, right());
  shmem_put_signal_nbi(ctx, dest, source, 9, signal_word, 1, SHMEM_SIGNAL_ADD, right());
  shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, 7);
  shmem_barrier_all();
  shmem_signal_set(signal_word, 20, right());
  shmem_ctx_signal_add(ctx, signal_word, 1, right());
  shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, 21);
  shmem_barrier_all();
  shmem_ctx_signal_set(ctx, signal_word, 30, right());
  shmem_signal_add(signal_word, 1, right());
  shmem_signal_wait_until(signal_word, SHMEM_CMP_EQ, 31);
  shmem_barrier_all();
}

static void test_locks(void) {
  static long lock, counter, holder;
  enum { kTurns = 200 };
  for (int i = 0; i < kTurns; ++i) {
    if (i % 3 == 0) {
      while (shmem_test_lock(&lock) != 0) {
      }
    } else {
      shmem_set_lock(&lock);
    }
    CHECK(shmem_long_g(&holder, 0) == 0);
    shmem_long_p(&holder, shmem_my_pe() + 1, 0);
    const long seen = shmem_long_g(&counter, 0);
    shmem_long_p(&counter, seen + 1, 0);
    CHECK(shmem_long_g(&holder, 0) == shmem_my_pe() + 1);
    shmem_long_p(&holder, 0, 0);
    shmem_clear_lock(&lock);
  }
  shmem_barrier_all();
  CHECK(shmem_long_g(&counter, 0) == (long)kTurns * shmem_n_pes());
  CHECK(lock == 0);
  shmem_barrier_all();
}

/* PEs get the lock in the order of their requests. The waiting PEs sleep when the lock becomes free, so a lock without
 * an order would go to the PE that had it last. Only a PE that is interrupted between reading the counter and
 * requesting the lock sees more turns than there are PEs. From another node each of these takes as long as several
 * turns, so only PEs on the lock's node are checked. */
static void test_locks_are_fair(void) {
  static long lock, turns;
  enum { kTurns = 30 };
  int in_order = 0;
  for (int i = 0; i < kTurns; ++i) {
    const long before = shmem_long_atomic_fetch(&turns, 0);
    shmem_set_lock(&lock);
    const long overtaken = shmem_long_atomic_fetch_inc(&turns, 0) - before;
    in_order += overtaken <= shmem_n_pes() ? 1 : 0;
    usleep(200);
    shmem_clear_lock(&lock);
  }
  CHECK(in_order >= kTurns - 2 || shmem_ptr(&turns, 0) == NULL);
  shmem_barrier_all();
}

PE_PART(wait) {
  shmem_init();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, TYPE) on_heap_and_globals(test_wait_##NAME);
  SHMEM_AMO_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_signal_##NAME);
  SHMEM_RMA_TYPES(RUN)
#undef RUN
#define RUN(BITS, BYTES) on_heap_and_globals(test_signal_size_##BITS);
  SHMEM_SIZES(RUN)
  on_heap_and_globals(test_signal_bytes);
  test_names();
  test_any_returns_each();
  test_locks();
  test_locks_are_fair();
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
