/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.11: empty sets, comparisons of signed and unsigned values, threads, whole words. */
#include "conformance_check.h"

enum { kWords = 6 };

/* Sets that are empty, because there are no words or all are excluded, by any value but 0. */
#define TEST_EMPTY(NAME, TYPE)                                                                                      \
  static void test_empty_##NAME(void) {                                                                             \
    static TYPE words[kWords];                                                                                      \
    static const int out[kWords] = {1, 2, -1, 1, 256, 1};                                                           \
    TYPE values[kWords] = {1, 1, 1, 1, 1, 1};                                                                       \
    size_t indices[kWords];                                                                                         \
    for (int i = 0; i < 2; ++i) {                                                                                   \
      const size_t n = i == 0 ? 0 : kWords;                                                                         \
      const int* status = i == 0 ? NULL : out;                                                                      \
      TYPE* at = i == 0 ? NULL : words;                                                                             \
      size_t* to = i == 0 ? NULL : indices;                                                                         \
      TYPE* with = i == 0 ? NULL : values;                                                                          \
      shmem_##NAME##_wait_until_all(at, n, status, SHMEM_CMP_EQ, 1);                                                \
      shmem_##NAME##_wait_until_all_vector(at, n, status, SHMEM_CMP_EQ, with);                                      \
      EXPECT(shmem_##NAME##_wait_until_any(at, n, status, SHMEM_CMP_EQ, 1) == SIZE_MAX, "wait_until_any: no word"); \
      EXPECT(shmem_##NAME##_wait_until_any_vector(at, n, status, SHMEM_CMP_EQ, with) == SIZE_MAX,                   \
             "wait_until_any_vector gives SIZE_MAX for an empty set: " #NAME);                                      \
      EXPECT(shmem_##NAME##_wait_until_some(at, n, to, status, SHMEM_CMP_EQ, 1) == 0, "wait_until_some: no word");  \
      EXPECT(shmem_##NAME##_wait_until_some_vector(at, n, to, status, SHMEM_CMP_EQ, with) == 0,                     \
             "wait_until_some_vector gives 0 for an empty set: " #NAME);                                            \
      EXPECT(shmem_##NAME##_test_all(at, n, status, SHMEM_CMP_EQ, 1) == 1, "test_all gives 1 for an empty set");    \
      EXPECT(shmem_##NAME##_test_all_vector(at, n, status, SHMEM_CMP_EQ, with) == 1,                                \
             "test_all_vector gives 1 for an empty set: " #NAME);                                                   \
      EXPECT(shmem_##NAME##_test_any(at, n, status, SHMEM_CMP_EQ, 1) == SIZE_MAX, "test_any: no word");             \
      EXPECT(shmem_##NAME##_test_any_vector(at, n, status, SHMEM_CMP_EQ, with) == SIZE_MAX,                         \
             "test_any_vector gives SIZE_MAX for an empty set: " #NAME);                                            \
      EXPECT(shmem_##NAME##_test_some(at, n, to, status, SHMEM_CMP_EQ, 1) == 0, "test_some: no word");              \
      EXPECT(shmem_##NAME##_test_some_vector(at, n, to, status, SHMEM_CMP_EQ, with) == 0,                           \
             "test_some_vector gives 0 for an empty set: " #NAME);                                                  \
    }                                                                                                               \
  }
TEST_EMPTY(int, int)
TEST_EMPTY(long, long)
TEST_EMPTY(ulonglong, unsigned long long)
TEST_EMPTY(uint32, uint32_t)
TEST_EMPTY(size, size_t)
TEST_EMPTY(ptrdiff, ptrdiff_t)

/* All six comparisons of `low`, `high` with each other, in every form. */
#define EXPECT_TESTS(NAME, TYPE, have, cmp, with, result)                                                          \
  do {                                                                                                             \
    size_t index_ = 9;                                                                                             \
    TYPE values_[1] = {(with)};                                                                                    \
    static TYPE word;                                                                                              \
    word = (have);                                                                                                 \
    EXPECT(shmem_##NAME##_test(&word, cmp, with) == (result), #NAME ": " #have " " #cmp " " #with);                \
    EXPECT(shmem_##NAME##_test_all(&word, 1, NULL, cmp, with) == (result), "test_all compares as test: " #NAME);   \
    EXPECT(shmem_##NAME##_test_all_vector(&word, 1, NULL, cmp, values_) == (result), "test_all_vector: " #NAME);   \
    EXPECT((shmem_##NAME##_test_any(&word, 1, NULL, cmp, with) == 0) == (result), "test_any: " #NAME);             \
    EXPECT((shmem_##NAME##_test_any_vector(&word, 1, NULL, cmp, values_) == 0) == (result), "any_vector: " #NAME); \
    EXPECT(shmem_##NAME##_test_some(&word, 1, &index_, NULL, cmp, with) == (size_t)(result), "test_some: " #NAME); \
    EXPECT(shmem_##NAME##_test_some_vector(&word, 1, &index_, NULL, cmp, values_) == (size_t)(result),             \
           "test_some_vector compares as test: " #NAME);                                                           \
    EXPECT(!(result) || index_ == 0, "test_some tells the index: " #NAME);                                         \
    if (result) {                                                                                                  \
      shmem_##NAME##_wait_until(&word, cmp, with);                                                                 \
      shmem_##NAME##_wait_until_all(&word, 1, NULL, cmp, with);                                                    \
      EXPECT(shmem_##NAME##_wait_until_any(&word, 1, NULL, cmp, with) == 0, "wait_until_any: " #NAME);             \
      EXPECT(shmem_##NAME##_wait_until_some(&word, 1, &index_, NULL, cmp, with) == 1, "wait_until_some: " #NAME);  \
    }                                                                                                              \
  } while (0)
#define TEST_COMPARISONS(NAME, TYPE, low, high)            \
  static void test_comparisons_##NAME(void) {              \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_EQ, low, 1);   \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_EQ, high, 0);  \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_NE, high, 1);  \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_NE, high, 0); \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_GT, low, 1);  \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_GT, high, 0);  \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_GT, low, 0);   \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_GE, low, 1);   \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_GE, high, 0);  \
    EXPECT_TESTS(NAME, TYPE, low, SHMEM_CMP_LT, high, 1);  \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_LT, low, 0);  \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_LT, high, 0); \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_LE, high, 1); \
    EXPECT_TESTS(NAME, TYPE, high, SHMEM_CMP_LE, low, 0);  \
  }
TEST_COMPARISONS(int, int, -5, 3)
TEST_COMPARISONS(long, long, -0x7000000000000000L, 0x7000000000000000L)
TEST_COMPARISONS(int64, int64_t, -1, 0)
TEST_COMPARISONS(ptrdiff, ptrdiff_t, -2, 1)
TEST_COMPARISONS(uint, unsigned int, 3U, 0xfffffff0U)
TEST_COMPARISONS(ulong, unsigned long, 3UL, 0xf000000000000000UL)
TEST_COMPARISONS(uint64, uint64_t, 1U, 0xffffffffffffffffU)
TEST_COMPARISONS(size, size_t, 0x100000000U, 0x8000000000000000U)

/* Status is not changed; excluded words may have any value; indices are unique and of satisfied words. */
static void test_status(void) {
  static long words[kWords];
  static const long start_values[kWords] = {5, 0, 5, 5, 0, 5};
  int status[kWords] = {0, 0, 1, 0, 1, 0};
  size_t indices[kWords];
  memcpy(words, start_values, sizeof words);
  const size_t found = shmem_long_test_some(words, kWords, indices, status, SHMEM_CMP_EQ, 5);
  EXPECT(found == 3, "test_some counts the words that are not excluded");
  int seen[kWords] = {0};
  for (size_t i = 0; i < found; ++i) {
    EXPECT(indices[i] < kWords && words[indices[i]] == 5 && status[indices[i]] == 0, "an index is of such a word");
    EXPECT(seen[indices[i]]++ == 0, "no index comes twice");
  }
  status[1] = 1;
  EXPECT(shmem_long_test_all(words, kWords, status, SHMEM_CMP_EQ, 5) == 1, "excluded words need not satisfy");
  shmem_long_wait_until_all(words, kWords, status, SHMEM_CMP_EQ, 5);
  EXPECT(status[0] == 0 && status[1] == 1 && status[2] == 1 && status[5] == 0, "status is not changed");
  EXPECT(shmem_long_test_some(words, kWords, indices, status, SHMEM_CMP_EQ, 6) == 0, "no word satisfies");
  EXPECT(shmem_long_test_any(words, kWords, status, SHMEM_CMP_EQ, 6) == SIZE_MAX, "no word satisfies");
}

static long given;
static long answered;

static void* give_later(void* unused) {
  usleep(10000);
  shmem_long_atomic_set(&given, 1, me);
  shmem_long_wait_until(&answered, SHMEM_CMP_EQ, 1);
  return unused;
}

/* Section 9.2: a thread that waits stops no other thread of its PE, also one that it waits for. */
static void test_threads(void) {
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, give_later, NULL) == 0, "a thread can be started");
  shmem_long_wait_until(&given, SHMEM_CMP_EQ, 1);
  shmem_long_atomic_set(&answered, 1, me);
  EXPECT(pthread_join(thread, NULL) == 0, "a thread that was waited for goes on");
}

/* A value that changes in both halves at once is never taken for one that it never had. */
static void test_whole_words(void) {
  static uint64_t word;
  const uint64_t both = 0x0000000100000001U;
  shmem_barrier_all();
  for (uint64_t i = 1; i <= 2000; ++i) {
    shmem_uint64_atomic_set(&word, i * both, right());
    EXPECT(shmem_uint64_test(&word, SHMEM_CMP_EQ, (i << 32) + i - 1) == 0, "no part of a value is seen");
    if (i % 50 == 0) {
      shmem_uint64_wait_until(&word, SHMEM_CMP_GE, i * both);
    }
  }
  shmem_barrier_all();
}

/* Section 9.12: a PE that has seen a word sees what was put before it, with a fence between. */
static void test_order_for_the_waiter(void) {
  static long data[500], flags[2];
  long source[500];
  for (long round = 1; round <= 40; ++round) {
    for (int i = 0; i < 500; ++i) {
      source[i] = round;
    }
    shmem_long_put(data, source, 500, right());
    shmem_fence();
    shmem_long_atomic_set(&flags[round % 2], round, right());
    const size_t one = shmem_long_wait_until_any(flags, 2, NULL, SHMEM_CMP_EQ, round);
    EXPECT(one == (size_t)(round % 2), "the word that was set is found");
    EXPECT(data[0] == round && data[499] == round, "what was put before the word is there");
    shmem_barrier_all();
    source[0] = round + 1000;
    shmem_long_put(data, source, 1, right());
    shmem_fence();
    shmem_long_atomic_set(&flags[round % 2], -round, right());
    while (shmem_long_test(&flags[round % 2], SHMEM_CMP_LT, 0) == 0) {
      usleep(50); /* the other PEs may need this processor */
    }
    EXPECT(data[0] == round + 1000, "test orders as the waits do");
    shmem_barrier_all();
    flags[round % 2] = 0;
    shmem_barrier_all();
  }
}

PE_PART(conformance_waits) {
  int provided = -1;
  EXPECT(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE,
         "several threads may make calls");
  me = shmem_my_pe();
  pes = shmem_n_pes();
  test_empty_int();
  test_empty_long();
  test_empty_ulonglong();
  test_empty_uint32();
  test_empty_size();
  test_empty_ptrdiff();
  test_comparisons_int();
  test_comparisons_long();
  test_comparisons_int64();
  test_comparisons_ptrdiff();
  test_comparisons_uint();
  test_comparisons_ulong();
  test_comparisons_uint64();
  test_comparisons_size();
  test_status();
  test_threads();
  test_whole_words();
  test_order_for_the_waiter();
  shmem_finalize();
  return 0;
}
