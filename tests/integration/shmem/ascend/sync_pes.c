/* SPDX-License-Identifier: Apache-2.0 */
/* Ascend SHMEM's signals, waits, barriers and streams on the host: every call, of every type and size. */
#include "check.h"

enum { kCount = 5 };

static int32_t* signal_word; /* symmetric */

/* Every PE puts elements with a signal to its right, and waits for those from its left. */
#define CHECK_SIGNALLED(T, put, cmp, with, value)                                \
  do {                                                                           \
    for (size_t i = 0; i < 64; ++i) source[i] = (T)pattern(aclshmem_my_pe(), i); \
    *signal_word = 5;                                                            \
    aclshmem_barrier_all();                                                      \
    put;                                                                         \
    CHECK(aclshmem_signal_wait_until(signal_word, cmp, with) == (value));        \
    for (size_t i = 0; i < 64; ++i) CHECK(dest[i] == (T)pattern(left(), i));     \
    aclshmem_barrier_all();                                                      \
    memset(dest, 0, 64 * sizeof(T));                                             \
  } while (0)

#define TEST_SIGNALS(NAME, T)                                                                                     \
  static void test_signals_##NAME(void* dest_memory, void* source_memory) {                                       \
    T* dest = (T*)dest_memory;                                                                                    \
    T* source = (T*)source_memory;                                                                                \
    uint8_t* word = (uint8_t*)signal_word;                                                                        \
    CHECK_SIGNALLED(T, aclshmem_##NAME##_put_signal(dest, source, 64, word, -7, ACLSHMEM_SIGNAL_SET, right()),    \
                    ACLSHMEM_CMP_LE, -7, -7);                                                                     \
    CHECK_SIGNALLED(T, aclshmem_##NAME##_put_signal_nbi(dest, source, 64, word, 4, ACLSHMEM_SIGNAL_ADD, right()), \
                    ACLSHMEM_CMP_GE, 9, 9);                                                                       \
  }
ACLSHMEM_HOST_TYPES(TEST_SIGNALS)

#define TEST_SIGNALS_BITS(BITS, BYTES)                                                                                 \
  static void test_signals_##BITS(void* dest_memory, void* source_memory) {                                            \
    char* dest = (char*)dest_memory;                                                                                   \
    char* source = (char*)source_memory;                                                                               \
    CHECK_SIGNALLED(                                                                                                   \
        char, aclshmem_put##BITS##_signal(dest, source, 64 / BYTES, signal_word, 1, ACLSHMEM_SIGNAL_SET, right()),     \
        ACLSHMEM_CMP_EQ, 1, 1);                                                                                        \
    CHECK_SIGNALLED(                                                                                                   \
        char, aclshmem_put##BITS##_signal_nbi(dest, source, 64 / BYTES, signal_word, 1, ACLSHMEM_SIGNAL_ADD, right()), \
        ACLSHMEM_CMP_GT, 5, 6);                                                                                        \
  }
SHMEM_SIZES(TEST_SIGNALS_BITS)

static void test_signals_mem(void* dest_memory, void* source_memory) {
  char* dest = (char*)dest_memory;
  char* source = (char*)source_memory;
  CHECK_SIGNALLED(char, aclshmemx_putmem_signal(dest, source, 64, signal_word, 1, ACLSHMEM_SIGNAL_SET, right()),
                  ACLSHMEM_CMP_NE, 5, 1);
  CHECK_SIGNALLED(char, aclshmemx_putmem_signal_nbi(dest, source, 64, signal_word, 1, ACLSHMEM_SIGNAL_ADD, right()),
                  ACLSHMEM_CMP_EQ, 6, 6);
}

/* The whole family of one type; the left neighbour writes the elements. */
#define TEST_WAITS(NAME, T, TYPE)                                                                              \
  static void test_waits_##NAME(void* memory) {                                                                \
    T* words = (T*)memory;                                                                                     \
    const int status[kCount] = {0, 0, 1, 0, 0};                                                                \
    const int all_excluded[kCount] = {1, 1, 1, 1, 1};                                                          \
    const T values[kCount] = {1, 2, 3, 4, 5};                                                                  \
    size_t indices[kCount] = {0};                                                                              \
    size_t found = 7;                                                                                          \
    int yes = 7;                                                                                               \
    memset(words, 0, kCount * sizeof(T));                                                                      \
    aclshmem_barrier_all();                                                                                    \
    aclshmem_##NAME##_test(words, ACLSHMEM_CMP_EQ, 0, &yes);                                                   \
    CHECK(yes == 1);                                                                                           \
    aclshmem_##NAME##_test_any(words, kCount, status, ACLSHMEM_CMP_NE, 0, &found);                             \
    CHECK(found == SIZE_MAX);                                                                                  \
    aclshmem_##NAME##_test_some(words, kCount, indices, status, ACLSHMEM_CMP_NE, 0, &found);                   \
    CHECK(found == 0);                                                                                         \
    aclshmem_##NAME##_test_all(words, kCount, NULL, ACLSHMEM_CMP_LE, 0, &yes);                                 \
    CHECK(yes == 1);                                                                                           \
    aclshmem_sync_all();                                                                                       \
                                                                                                               \
    aclshmem_##NAME##_p(words + 3, 4, right());                                                                \
    aclshmem_##NAME##_wait_until_any(words, kCount, status, ACLSHMEM_CMP_GE, 4, &found);                       \
    CHECK(found == 3);                                                                                         \
    aclshmem_##NAME##_wait_until_some(words, kCount, indices, status, ACLSHMEM_CMP_NE, 0, &found);             \
    CHECK(found == 1 && indices[0] == 3);                                                                      \
    aclshmem_##NAME##_wait(words + 3, 0);                                                                      \
    aclshmem_sync(ACLSHMEM_TEAM_WORLD);                                                                        \
                                                                                                               \
    for (int i = 0; i < kCount; ++i) aclshmem_##NAME##_p(words + i, values[i], right());                       \
    aclshmem_##NAME##_wait_until(words + 4, ACLSHMEM_CMP_EQ, 5);                                               \
    aclshmem_##NAME##_wait_until_all(words, kCount, NULL, ACLSHMEM_CMP_GT, 0);                                 \
    aclshmem_##NAME##_wait_until_all_vector(words, kCount, status, ACLSHMEM_CMP_EQ, values);                   \
    aclshmem_##NAME##_wait_until_any_vector(words, kCount, status, ACLSHMEM_CMP_EQ, values, &found);           \
    CHECK(found < kCount && found != 2);                                                                       \
    aclshmem_##NAME##_wait_until_some_vector(words, kCount, indices, status, ACLSHMEM_CMP_EQ, values, &found); \
    CHECK(found == 4 && indices[2] == 3);                                                                      \
    aclshmem_##NAME##_test_all_vector(words, kCount, NULL, ACLSHMEM_CMP_EQ, values, &yes);                     \
    CHECK(yes == 1);                                                                                           \
    aclshmem_##NAME##_test_all_vector(words, kCount, NULL, ACLSHMEM_CMP_LT, values, &yes);                     \
    CHECK(yes == 0);                                                                                           \
    aclshmem_##NAME##_test_any_vector(words, kCount, NULL, ACLSHMEM_CMP_NE, values, &found);                   \
    CHECK(found == SIZE_MAX);                                                                                  \
    aclshmem_##NAME##_test_some_vector(words, kCount, indices, NULL, ACLSHMEM_CMP_GE, values, &found);         \
    CHECK(found == kCount);                                                                                    \
    aclshmem_##NAME##_wait_until_all(words, kCount, all_excluded, ACLSHMEM_CMP_LT, 0);                         \
    aclshmem_##NAME##_wait_until_any(words, kCount, all_excluded, ACLSHMEM_CMP_LT, 0, &found);                 \
    CHECK(found == SIZE_MAX);                                                                                  \
    aclshmem_barrier(ACLSHMEM_TEAM_WORLD);                                                                     \
  }
ACLSHMEM_WAIT_TYPES(TEST_WAITS)

/* A stream runs in order what the host queues at once: if an operation or a wait ran out of order, the ring would stop
 * or the data would be wrong. */
static void test_stream(shmemx_stream_t* stream) {
  enum { kWords = 1 << 16, kRounds = 10 };
  const aclshmem_handle_t world = {ACLSHMEM_TEAM_WORLD};
  int* ring = (int*)aclshmem_calloc(2, kWords * sizeof(int));
  int* mine = ring + kWords;
  CHECK(ring != NULL);
  *signal_word = 0;
  aclshmem_barrier_all();
  for (int round = 1; round <= kRounds; ++round) {
    mine[0] = mine[kWords - 1] = round * 100 + aclshmem_my_pe();
    aclshmemx_putmem_on_stream(ring, mine, kWords * sizeof(int), right(), stream);
    aclshmemx_signal_op_on_stream(signal_word, round, ACLSHMEM_SIGNAL_SET, right(), stream);
    aclshmemx_signal_wait_until_on_stream(signal_word, ACLSHMEM_CMP_GE, round, stream);
    aclshmemx_getmem_on_stream(mine, ring, kWords * sizeof(int), aclshmem_my_pe(), stream);
    aclshmemx_quiet_on_stream(stream);
    aclshmemx_barrier_all_on_stream(stream);
    CHECK(shmemx_stream_synchronize(stream) == 0);
    CHECK(mine[0] == round * 100 + left() && mine[kWords - 1] == round * 100 + left());
  }
  aclshmemx_signal_op_on_stream(signal_word, 1, ACLSHMEM_SIGNAL_ADD, right(), stream);
  aclshmemx_handle_wait(world, stream);
  CHECK(shmemx_stream_synchronize(stream) == 0 && *signal_word == kRounds + 1);
  aclshmem_free(ring);
}

/* Each PE counts in its own word; its right neighbour, if it is on the same node, waits for that word where its memory
 * has it. */
static void test_waits_for_words_elsewhere(void) {
  enum { kRounds = 20 };
  shmemx_stream_t* stream = NULL;
  CHECK(shmemx_stream_create(&stream) == 0);
  int32_t* const theirs = (int32_t*)aclshmem_ptr(signal_word, left());
  *signal_word = 0;
  aclshmem_barrier_all();
  for (int32_t round = 1; round <= kRounds; ++round) {
    shmemx_signal32_set(signal_word, round, aclshmem_my_pe());
    if (theirs == NULL) {
      continue;
    }
    if (round % 3 == 0) {
      CHECK(aclshmem_signal_wait_until(theirs, ACLSHMEM_CMP_GE, round) >= round);
    } else if (round % 3 == 1) {
      aclshmem_int32_wait_until_all(theirs, 1, NULL, ACLSHMEM_CMP_GE, round);
    } else {
      aclshmemx_signal_wait_until_on_stream(theirs, ACLSHMEM_CMP_GE, round, stream);
      CHECK(shmemx_stream_synchronize(stream) == 0);
    }
    int reached = 0;
    aclshmem_int32_test_all(theirs, 1, NULL, ACLSHMEM_CMP_GE, round, &reached);
    CHECK(reached == 1);
  }
  shmemx_stream_destroy(stream);
  aclshmem_barrier_all();
}

/* Collective calls of the host run after those of stream NULL, although the host does not wait for the stream. */
static void test_collectives_behind_stream(void) {
  for (int i = 0; i < 50; ++i) {
    aclshmem_team_t team = ACLSHMEM_TEAM_INVALID;
    aclshmemx_barrier_all_on_stream(NULL);
    aclshmemx_barrier_all_on_stream(NULL);
    void* block = aclshmem_malloc(64);
    CHECK(block != NULL);
    aclshmemx_barrier_all_on_stream(NULL);
    CHECK(aclshmem_team_split_strided(ACLSHMEM_TEAM_WORLD, 0, 1, aclshmem_n_pes(), &team) == ACLSHMEM_SUCCESS);
    aclshmemx_barrier_on_stream(team, NULL);
    aclshmem_team_destroy(team);
    aclshmemx_barrier_all_on_stream(NULL);
    aclshmem_free(block);
  }
  CHECK(shmemx_stream_synchronize(NULL) == 0);
}

PE_PART(sync) {
  shmem_init();
  void* dest = aclshmem_calloc(64, 16);
  void* source = aclshmem_calloc(64, 16);
  shmemx_stream_t* stream = NULL;
  signal_word = (int32_t*)aclshmem_calloc(1, sizeof *signal_word);
  CHECK(dest != NULL && source != NULL && signal_word != NULL);
#define RUN(NAME, ANY) test_signals_##NAME(dest, source);
  ACLSHMEM_HOST_TYPES(RUN)
  SHMEM_SIZES(RUN)
  test_signals_mem(dest, source);
#define RUN_WAITS(NAME, T, TYPE) test_waits_##NAME(dest);
  ACLSHMEM_WAIT_TYPES(RUN_WAITS)
  test_waits_for_words_elsewhere();
  test_collectives_behind_stream();
  test_stream(NULL);
  CHECK(shmemx_stream_create(&stream) == 0);
  test_stream(stream);
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  CHECK(shmemx_stream_synchronize(stream) == 0); /* it may outlive the library */
  shmemx_stream_destroy(stream);
  return 0;
}
