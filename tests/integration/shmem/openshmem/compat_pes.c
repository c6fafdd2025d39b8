/* SPDX-License-Identifier: Apache-2.0 */
/* The extensions of other libraries (shmem_compat.h, shmemx_compat.h) do what the routines of OpenSHMEM do. */
#include <shmemx.h>

#include "check.h"

enum { kElements = 6 };

static void test_cache_control(void) {
  static long word = 7;
  shmem_set_cache_inv();
  shmem_set_cache_line_inv(&word);
  shmem_clear_cache_inv();
  shmem_clear_cache_line_inv(&word);
  shmem_udcflush();
  shmem_udcflush_line(&word);
  pshmem_udcflush();
  CHECK(word == 7);
}

static void test_clock(void) {
  const double begin = shmemx_wtime();
  double now = begin;
  while (now - begin < 0.002) {
    const double before = now;
    now = shmemx_wtime();
    CHECK(now >= before);
  }
  shmemx_pcontrol(1);
}

static void test_node(void) {
  CHECK(SHMEMX_TEAM_NODE == SHMEM_TEAM_SHARED && shmem_team_n_pes(SHMEMX_TEAM_NODE) >= 1);
}

static void test_signals(void) {
  static uint64_t sum, last;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    shmemx_signal_add(&sum, 2, pe);
    shmemx_ctx_signal_add(SHMEM_CTX_DEFAULT, &sum, 1, pe);
  }
  shmem_signal_wait_until(&sum, SHMEM_CMP_EQ, 3 * (uint64_t)shmem_n_pes());
  shmemx_signal_set(&last, 5, right());
  shmem_signal_wait_until(&last, SHMEM_CMP_EQ, 5);
  shmem_barrier_all();
  shmemx_ctx_signal_set(SHMEM_CTX_DEFAULT, &last, 6, right());
  shmem_signal_wait_until(&last, SHMEM_CMP_EQ, 6);
  shmem_barrier_all();
  shmemx_signal_set(SHMEM_CTX_DEFAULT, &last, 7, right());
  shmemx_signal_add(SHMEM_CTX_DEFAULT, &last, 1, right());
  shmem_signal_wait_until(&last, SHMEM_CMP_EQ, 8);
  void* const block = shmem_malloc_with_hints(64, SHMEMX_MALLOC_NO_BARRIER | SHMEM_MALLOC_SIGNAL_REMOTE);
  CHECK(block != NULL);
  shmem_free(block);
  shmem_barrier_all();
}

/* Blocks of 2 of every 3 elements; PUT and GET are named as the type or the size is. */
#define TEST_BLOCKS(NAME, TYPE, PUT, GET)                                                   \
  static void test_blocks_##NAME(void* dest_memory, void* source_memory) {                  \
    TYPE* dest = (TYPE*)dest_memory;                                                        \
    TYPE* source = (TYPE*)source_memory;                                                    \
    for (size_t i = 0; i < kElements; ++i) {                                                \
      source[i] = (TYPE)pattern(shmem_my_pe(), i);                                          \
    }                                                                                       \
    shmem_barrier_all();                                                                    \
    shmemx_##PUT(dest, source, 3, 3, 2, 2, right());                                        \
    shmemx_ctx_##PUT(SHMEM_CTX_DEFAULT, dest + kElements, source, 2, 3, 2, 2, right());     \
    shmemx_##GET(dest + 2 * kElements, source, 2, 3, 2, 2, right());                        \
    shmemx_ctx_##GET(SHMEM_CTX_DEFAULT, dest + 3 * kElements, source, 2, 3, 2, 2, right()); \
    shmem_barrier_all();                                                                    \
    for (size_t i = 0; i < 4; ++i) {                                                        \
      const size_t from = i + i / 2;                                                        \
      CHECK(dest[from] == (TYPE)pattern(left(), from));                                     \
      CHECK(dest[kElements + i] == (TYPE)pattern(left(), from));                            \
      CHECK(dest[2 * kElements + i] == (TYPE)pattern(right(), from));                       \
      CHECK(dest[3 * kElements + i] == (TYPE)pattern(right(), from));                       \
    }                                                                                       \
    CHECK(dest[2] == (TYPE)0);                                                              \
  }
#define TEST_TYPED_BLOCKS(NAME, TYPE) TEST_BLOCKS(NAME, TYPE, NAME##_ibput, NAME##_ibget)
SHMEM_RMA_TYPES(TEST_TYPED_BLOCKS)
TEST_BLOCKS(size_8, int8_t, ibput8, ibget8)
TEST_BLOCKS(size_16, int16_t, ibput16, ibget16)
TEST_BLOCKS(size_32, int32_t, ibput32, ibget32)
TEST_BLOCKS(size_64, int64_t, ibput64, ibget64)
TEST_BLOCKS(size_128, long double, ibput128, ibget128)

#define TEST_SCAN(NAME, TYPE)                                                      \
  static void test_scan_##NAME(void* dest_memory, void* source_memory) {           \
    TYPE* dest = (TYPE*)dest_memory;                                               \
    TYPE* source = (TYPE*)source_memory;                                           \
    const short before = (short)(2 * shmem_my_pe()), sum = (short)(before + 2);    \
    source[0] = (TYPE)2;                                                           \
    CHECK(shmemx_##NAME##_sum_inscan(SHMEM_TEAM_WORLD, dest, source, 1) == 0);     \
    CHECK(shmemx_##NAME##_sum_exscan(SHMEM_TEAM_WORLD, dest + 1, source, 1) == 0); \
    CHECK(dest[0] == (TYPE)sum && dest[1] == (TYPE)before);                        \
  }
SHMEM_ARITHMETIC_REDUCE_TYPES(TEST_SCAN)

/* Those without a type, in C11 and C++. */
static void test_generic(void* dest_memory, void* source_memory) {
  long* dest = (long*)dest_memory;
  long* source = (long*)source_memory;
  source[0] = source[1] = 3;
  shmem_barrier_all();
  shmemx_ibput(dest, source, 2, 2, 2, 1, right());
  shmemx_ibget(SHMEM_CTX_DEFAULT, dest + 2, source, 2, 2, 2, 1, right());
  shmem_barrier_all();
  CHECK(dest[0] == 3 && dest[1] == 3 && dest[2] == 3 && dest[3] == 3);
  CHECK(shmemx_sum_inscan(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[0] == 3L * (shmem_my_pe() + 1));
  CHECK(shmemx_sum_exscan(SHMEM_TEAM_WORLD, dest, source, 1) == 0 && dest[0] == 3L * shmem_my_pe());
}

static void test_malloc(void) {
  void* memory = shmemx_malloc_with_hint(100, SHMEM_HINT_LOW_LAT_MEM | SHMEM_HINT_ATOMICS);
  CHECK(memory != NULL && shmem_addr_accessible(memory, right()));
  shmem_free(memory);
}

#define TEST_ONE(NAME, TYPE)                                              \
  static void test_one_##NAME(void* dest_memory, void* source) {          \
    TYPE* dest = (TYPE*)dest_memory;                                      \
    (void)source;                                                         \
    shmemx_##NAME##_p(dest, (TYPE)(shmem_my_pe() + 1), right());          \
    shmem_barrier_all();                                                  \
    CHECK(*dest == (TYPE)(left() + 1));                                   \
    CHECK(shmemx_##NAME##_g(dest, right()) == (TYPE)(shmem_my_pe() + 1)); \
  }
TEST_ONE(int16, int16_t)
TEST_ONE(int32, int32_t)
TEST_ONE(int64, int64_t)

#define TEST_WORD(NAME, TYPE)                                     \
  static void test_word_##NAME(void* dest_memory, void* source) { \
    TYPE* dest = (TYPE*)dest_memory;                              \
    const int pe = right();                                       \
    (void)source;                                                 \
    shmemx_##NAME##_set(dest, 5, pe);                             \
    CHECK(shmemx_##NAME##_fetch(dest, pe) == 5);                  \
    CHECK(shmemx_##NAME##_swap(dest, 6, pe) == 5);                \
    CHECK(shmemx_##NAME##_cswap(dest, 6, 7, pe) == 6);            \
    CHECK(shmemx_##NAME##_fadd(dest, 3, pe) == 7);                \
    shmemx_##NAME##_add(dest, -1, pe);                            \
    CHECK(shmemx_##NAME##_finc(dest, pe) == 9);                   \
    shmemx_##NAME##_inc(dest, pe);                                \
    CHECK(shmemx_##NAME##_fetch(dest, pe) == 11);                 \
    shmem_barrier_all();                                          \
    shmemx_##NAME##_wait_until(dest, SHMEM_CMP_GE, 11);           \
    shmemx_##NAME##_wait(dest, 10);                               \
    shmem_##NAME##_wait(dest, 10);                                \
  }
TEST_WORD(int32, int32_t)
TEST_WORD(int64, int64_t)

#define TEST_BITS(NAME, TYPE)                                     \
  static void test_bits_##NAME(void* dest_memory, void* source) { \
    TYPE* dest = (TYPE*)dest_memory;                              \
    const int pe = right();                                       \
    (void)source;                                                 \
    shmemx_##NAME##_atomic_or(dest, 6, pe);                       \
    CHECK(shmemx_##NAME##_atomic_fetch_and(dest, 3, pe) == 6);    \
    CHECK(shmemx_##NAME##_atomic_fetch_xor(dest, 7, pe) == 2);    \
    CHECK(shmemx_##NAME##_atomic_fetch_or(dest, 8, pe) == 5);     \
    shmemx_##NAME##_atomic_xor(dest, 1, pe);                      \
    shmemx_##NAME##_atomic_and(dest, 4, pe);                      \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == 4);            \
  }
TEST_BITS(int32, int32_t)
TEST_BITS(int64, int64_t)
TEST_BITS(uint32, uint32_t)
TEST_BITS(uint64, uint64_t)

#define CHECK_TO_ALL(NAME, VERB, expected)                                      \
  do {                                                                          \
    dest[0] = dest[1] = 99;                                                     \
    shmemx_##NAME##_##VERB##_to_all(dest, source, 1, 0, 0, pes, work, sync);    \
    shmem_barrier_all();                                                        \
    shmem_##NAME##_##VERB##_to_all(dest + 1, source, 1, 0, 0, pes, work, sync); \
    shmem_barrier_all();                                                        \
    CHECK(dest[0] == (expected) && dest[1] == (expected));                      \
  } while (0)
/* PE 0 contributes 6, the others 3. */
#define TEST_TO_ALL(NAME, TYPE)                                            \
  static void test_to_all_##NAME(void* dest_memory, void* source_memory) { \
    static long sync[SHMEM_REDUCE_SYNC_SIZE];                              \
    static TYPE work[SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];                   \
    TYPE* dest = (TYPE*)dest_memory;                                       \
    TYPE* source = (TYPE*)source_memory;                                   \
    const int pes = shmem_n_pes();                                         \
    TYPE product = 6;                                                      \
    for (int pe = 1; pe < pes; ++pe) {                                     \
      product = (TYPE)(3 * product);                                       \
    }                                                                      \
    source[0] = shmem_my_pe() == 0 ? 6 : 3;                                \
    CHECK_TO_ALL(NAME, and, pes == 1 ? 6 : 2);                             \
    CHECK_TO_ALL(NAME, or, pes == 1 ? 6 : 7);                              \
    CHECK_TO_ALL(NAME, xor, pes == 1 ? 6 : pes % 2 == 0 ? 5 : 6);          \
    CHECK_TO_ALL(NAME, max, 6);                                            \
    CHECK_TO_ALL(NAME, min, pes == 1 ? 6 : 3);                             \
    CHECK_TO_ALL(NAME, sum, 3 * pes + 3);                                  \
    CHECK_TO_ALL(NAME, prod, product);                                     \
  }
TEST_TO_ALL(int16, int16_t)
TEST_TO_ALL(int32, int32_t)
TEST_TO_ALL(int64, int64_t)

PE_PART(compat) {
  shmem_set_cache_inv(); /* also before shmem_init */
  shmem_init();
  test_cache_control();
  test_clock();
  test_node();
  test_signals();
  test_malloc();
#define RUN(NAME, TYPE) on_heap_and_globals(test_blocks_##NAME);
  SHMEM_RMA_TYPES(RUN)
  RUN(size_8, )
  RUN(size_16, )
  RUN(size_32, )
  RUN(size_64, )
  RUN(size_128, )
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_scan_##NAME);
  SHMEM_ARITHMETIC_REDUCE_TYPES(RUN)
#undef RUN
  on_heap_and_globals(test_generic);
  on_heap_and_globals(test_one_int16);
  on_heap_and_globals(test_one_int32);
  on_heap_and_globals(test_one_int64);
  on_heap_and_globals(test_word_int32);
  on_heap_and_globals(test_word_int64);
  on_heap_and_globals(test_bits_int32);
  on_heap_and_globals(test_bits_int64);
  on_heap_and_globals(test_bits_uint32);
  on_heap_and_globals(test_bits_uint64);
  on_heap_and_globals(test_to_all_int16);
  on_heap_and_globals(test_to_all_int32);
  on_heap_and_globals(test_to_all_int64);
  shmem_finalize();
  return 0;
}
