/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.7: every atomic operation for every type, by its name and by its generic one. */
#include "check.h"

static shmem_ctx_t ctx;

/* A PE works on a word of its right neighbour, and no other PE works on that word. */
#define VALUE(dest) (shmem_barrier_all(), *(dest))

#define TEST_EXTENDED(NAME, TYPE)                                             \
  static void test_extended_##NAME(void* dest_memory, void* source_memory) {  \
    TYPE* dest = (TYPE*)dest_memory;                                          \
    TYPE* fetch = (TYPE*)source_memory;                                       \
    const int pe = right();                                                   \
    shmem_##NAME##_atomic_set(dest, (TYPE)3, pe);                             \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == (TYPE)3);                  \
    shmem_ctx_##NAME##_atomic_set(ctx, dest, (TYPE)4, pe);                    \
    CHECK(shmem_ctx_##NAME##_atomic_fetch(ctx, dest, pe) == (TYPE)4);         \
    CHECK(shmem_##NAME##_atomic_swap(dest, (TYPE)5, pe) == (TYPE)4);          \
    CHECK(shmem_ctx_##NAME##_atomic_swap(ctx, dest, (TYPE)6, pe) == (TYPE)5); \
    shmem_##NAME##_atomic_swap_nbi(fetch, dest, (TYPE)7, pe);                 \
    shmem_quiet();                                                            \
    CHECK(*fetch == (TYPE)6);                                                 \
    shmem_ctx_##NAME##_atomic_swap_nbi(ctx, fetch, dest, (TYPE)8, pe);        \
    shmem_ctx_quiet(ctx);                                                     \
    CHECK(*fetch == (TYPE)7);                                                 \
    shmem_##NAME##_atomic_fetch_nbi(fetch, dest, pe);                         \
    shmem_quiet();                                                            \
    CHECK(*fetch == (TYPE)8);                                                 \
    *fetch = (TYPE)0;                                                         \
    shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, fetch, dest, pe);                \
    shmem_ctx_quiet(ctx);                                                     \
    CHECK(*fetch == (TYPE)8);                                                 \
    shmem_##NAME##_set(dest, (TYPE)9, pe);                                    \
    CHECK(shmem_##NAME##_fetch(dest, pe) == (TYPE)9);                         \
    CHECK(shmem_##NAME##_swap(dest, (TYPE)10, pe) == (TYPE)9);                \
    CHECK(VALUE(dest) == (TYPE)10);                                           \
  }
SHMEM_EXTENDED_AMO_TYPES(TEST_EXTENDED)

#define TEST_STANDARD(NAME, TYPE)                                                   \
  static void test_standard_##NAME(void* dest_memory, void* source_memory) {        \
    TYPE* dest = (TYPE*)dest_memory;                                                \
    TYPE* fetch = (TYPE*)source_memory;                                             \
    const int pe = right();                                                         \
    CHECK(shmem_##NAME##_atomic_compare_swap(dest, 1, 2, pe) == 0);                 \
    CHECK(shmem_##NAME##_atomic_compare_swap(dest, 0, 2, pe) == 0);                 \
    CHECK(shmem_ctx_##NAME##_atomic_compare_swap(ctx, dest, 2, 3, pe) == 2);        \
    shmem_##NAME##_atomic_compare_swap_nbi(fetch, dest, 3, 4, pe);                  \
    shmem_quiet();                                                                  \
    CHECK(*fetch == 3);                                                             \
    shmem_ctx_##NAME##_atomic_compare_swap_nbi(ctx, fetch, dest, 4, 5, pe);         \
    shmem_ctx_quiet(ctx);                                                           \
    CHECK(*fetch == 4);                                                             \
    CHECK(shmem_##NAME##_atomic_fetch_inc(dest, pe) == 5);                          \
    CHECK(shmem_ctx_##NAME##_atomic_fetch_inc(ctx, dest, pe) == 6);                 \
    shmem_##NAME##_atomic_fetch_inc_nbi(fetch, dest, pe);                           \
    shmem_quiet();                                                                  \
    CHECK(*fetch == 7);                                                             \
    shmem_ctx_##NAME##_atomic_fetch_inc_nbi(ctx, fetch, dest, pe);                  \
    shmem_ctx_quiet(ctx);                                                           \
    CHECK(*fetch == 8);                                                             \
    shmem_##NAME##_atomic_inc(dest, pe);                                            \
    shmem_ctx_##NAME##_atomic_inc(ctx, dest, pe);                                   \
    CHECK(shmem_##NAME##_atomic_fetch_add(dest, 4, pe) == 11);                      \
    CHECK(shmem_ctx_##NAME##_atomic_fetch_add(ctx, dest, 5, pe) == 15);             \
    shmem_##NAME##_atomic_fetch_add_nbi(fetch, dest, 6, pe);                        \
    shmem_quiet();                                                                  \
    CHECK(*fetch == 20);                                                            \
    shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, fetch, dest, 7, pe);               \
    shmem_ctx_quiet(ctx);                                                           \
    CHECK(*fetch == 26);                                                            \
    shmem_##NAME##_atomic_add(dest, (TYPE)-3, pe);                                  \
    shmem_ctx_##NAME##_atomic_add(ctx, dest, 10, pe);                               \
    CHECK(shmem_##NAME##_cswap(dest, 40, 41, pe) == 40);                            \
    CHECK(shmem_##NAME##_finc(dest, pe) == 41);                                     \
    shmem_##NAME##_inc(dest, pe);                                                   \
    CHECK(shmem_##NAME##_fadd(dest, 7, pe) == 43);                                  \
    shmem_##NAME##_add(dest, 50, pe);                                               \
    CHECK(VALUE(dest) == 100);                                                      \
    shmem_barrier_all();                                                            \
    /* All PEs at once on one word. */                                              \
    for (int i = 0; i < 100; ++i) shmem_##NAME##_atomic_inc(dest + 1, 0);           \
    shmem_barrier_all();                                                            \
    CHECK(shmem_##NAME##_atomic_fetch(dest + 1, 0) == (TYPE)(100 * shmem_n_pes())); \
  }
SHMEM_AMO_TYPES(TEST_STANDARD)

#define CHECK_BITS(NAME, TYPE, VERB, first, value, result)                                        \
  do {                                                                                            \
    const TYPE after = (TYPE)(result);                                                            \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    CHECK(shmem_##NAME##_atomic_fetch_##VERB(dest, (TYPE)(value), pe) == (TYPE)(first));          \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == after);                                        \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    CHECK(shmem_ctx_##NAME##_atomic_fetch_##VERB(ctx, dest, (TYPE)(value), pe) == (TYPE)(first)); \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == after);                                        \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    shmem_##NAME##_atomic_##VERB(dest, (TYPE)(value), pe);                                        \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == after);                                        \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    shmem_ctx_##NAME##_atomic_##VERB(ctx, dest, (TYPE)(value), pe);                               \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == after);                                        \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    shmem_##NAME##_atomic_fetch_##VERB##_nbi(fetch, dest, (TYPE)(value), pe);                     \
    shmem_quiet();                                                                                \
    CHECK(*fetch == (TYPE)(first));                                                               \
    shmem_##NAME##_atomic_set(dest, (TYPE)(first), pe);                                           \
    shmem_ctx_##NAME##_atomic_fetch_##VERB##_nbi(ctx, fetch, dest, (TYPE)(value), pe);            \
    shmem_ctx_quiet(ctx);                                                                         \
    CHECK(*fetch == (TYPE)(first));                                                               \
    CHECK(shmem_##NAME##_atomic_fetch(dest, pe) == after);                                        \
  } while (0)
#define TEST_BITWISE(NAME, TYPE)                                                  \
  static void test_bitwise_##NAME(void* dest_memory, void* source_memory) {       \
    TYPE* dest = (TYPE*)dest_memory;                                              \
    TYPE* fetch = (TYPE*)source_memory;                                           \
    const int pe = right();                                                       \
    CHECK_BITS(NAME, TYPE, and, 0x7ff0ff0f, 0x0ff01234, 0x7ff0ff0f & 0x0ff01234); \
    CHECK_BITS(NAME, TYPE, or, 0x7ff0ff0f, 0x0ff01234, 0x7ff0ff0f | 0x0ff01234);  \
    CHECK_BITS(NAME, TYPE, xor, 0x7ff0ff0f, 0x0ff01234, 0x7ff0ff0f ^ 0x0ff01234); \
    shmem_barrier_all();                                                          \
  }
SHMEM_BITWISE_AMO_TYPES(TEST_BITWISE)
SHMEM_SIGNED_BITWISE_AMO_TYPES(TEST_BITWISE)

#define TEST_GENERIC(NAME, TYPE)                                                          \
  static void test_generic_##NAME(void* dest_memory, void* source_memory) {               \
    TYPE* dest = (TYPE*)dest_memory;                                                      \
    TYPE* fetch = (TYPE*)source_memory;                                                   \
    const TYPE* from = dest;                                                              \
    const int pe = right();                                                               \
    shmem_set(dest, (TYPE)0, pe);                                                         \
    shmem_atomic_set(dest, (TYPE)1, pe);                                                  \
    CHECK(shmem_atomic_fetch(from, pe) == (TYPE)1);                                       \
    CHECK(shmem_atomic_fetch_inc(ctx, dest, pe) == (TYPE)1);                              \
    shmem_atomic_inc(dest, pe);                                                           \
    CHECK(shmem_atomic_fetch_add(dest, (TYPE)2, pe) == (TYPE)3);                          \
    shmem_atomic_add(ctx, dest, (TYPE)3, pe);                                             \
    CHECK(shmem_atomic_compare_swap(ctx, dest, (TYPE)8, (TYPE)9, pe) == (TYPE)8);         \
    CHECK(shmem_atomic_swap(dest, (TYPE)10, pe) == (TYPE)9);                              \
    shmem_atomic_fetch_nbi(fetch, from, pe);                                              \
    shmem_quiet();                                                                        \
    CHECK(*fetch == (TYPE)10);                                                            \
    shmem_atomic_fetch_add_nbi(ctx, fetch, dest, (TYPE)1, pe);                            \
    shmem_atomic_fetch_inc_nbi(fetch, dest, pe);                                          \
    shmem_atomic_swap_nbi(fetch, dest, (TYPE)20, pe);                                     \
    shmem_atomic_compare_swap_nbi(fetch, dest, (TYPE)20, (TYPE)21, pe);                   \
    shmem_quiet();                                                                        \
    CHECK(shmem_fadd(dest, (TYPE)1, pe) == (TYPE)21);                                     \
    CHECK(shmem_fetch(from, pe) == (TYPE)22);                                             \
    CHECK(shmem_finc(dest, pe) == (TYPE)22 && shmem_swap(dest, (TYPE)2, pe) == (TYPE)23); \
    CHECK(shmem_cswap(dest, (TYPE)2, (TYPE)3, pe) == (TYPE)2);                            \
    shmem_inc(dest, pe);                                                                  \
    shmem_add(dest, (TYPE)1, pe);                                                         \
    CHECK(VALUE(dest) == (TYPE)5);                                                        \
  }
TEST_AMO_BASIC_TYPES(TEST_GENERIC)

#define TEST_GENERIC_BITWISE(NAME, TYPE)                                     \
  static void test_generic_bitwise_##NAME(void* dest_memory, void* source) { \
    TYPE* dest = (TYPE*)dest_memory;                                         \
    TYPE* fetch = (TYPE*)source;                                             \
    const int pe = right();                                                  \
    shmem_atomic_or(dest, (TYPE)6, pe);                                      \
    CHECK(shmem_atomic_fetch_and(ctx, dest, (TYPE)3, pe) == (TYPE)6);        \
    CHECK(shmem_atomic_fetch_xor(dest, (TYPE)7, pe) == (TYPE)2);             \
    CHECK(shmem_atomic_fetch_or(dest, (TYPE)8, pe) == (TYPE)5);              \
    shmem_atomic_xor(ctx, dest, (TYPE)1, pe);                                \
    shmem_atomic_and(dest, (TYPE)12, pe);                                    \
    shmem_atomic_fetch_or_nbi(fetch, dest, (TYPE)1, pe);                     \
    shmem_atomic_fetch_and_nbi(ctx, fetch, dest, (TYPE)9, pe);               \
    shmem_atomic_fetch_xor_nbi(fetch, dest, (TYPE)2, pe);                    \
    shmem_quiet();                                                           \
    CHECK(VALUE(dest) == (TYPE)11);                                          \
  }
TEST_BITWISE_AMO_GENERIC_TYPES(TEST_GENERIC_BITWISE)

PE_PART(atomic) {
  shmem_init();
  CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
#define RUN(NAME, TYPE) on_heap_and_globals(test_extended_##NAME);
  SHMEM_EXTENDED_AMO_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_standard_##NAME);
  SHMEM_AMO_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_bitwise_##NAME);
  SHMEM_BITWISE_AMO_TYPES(RUN)
  SHMEM_SIGNED_BITWISE_AMO_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_generic_##NAME);
  TEST_AMO_BASIC_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_generic_bitwise_##NAME);
  TEST_BITWISE_AMO_GENERIC_TYPES(RUN)
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
