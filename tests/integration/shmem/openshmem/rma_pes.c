/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.6: every routine for every type, by its name and by its generic one. */
#include "check.h"

static shmem_ctx_t ctx;

enum { kCount = 13 };

/* Every PE puts `source` to its right by `move`, or gets it from there, and checks `dest`: `expected` for each i, or
 * the previous contents. `wait` completes a get. */
#define CHECK_MOVE(TYPE, move, wait, length, expected)                        \
  do {                                                                        \
    for (size_t i = 0; i < kCount * 4; ++i) {                                 \
      source[i] = (TYPE)pattern(shmem_my_pe(), i);                            \
      dest[i] = (TYPE)99;                                                     \
    }                                                                         \
    shmem_barrier_all();                                                      \
    move;                                                                     \
    wait();                                                                   \
    for (size_t i = 0; i < (length); ++i) CHECK(dest[i] == (TYPE)(expected)); \
    CHECK(dest[length] == (TYPE)99);                                          \
    shmem_barrier_all();                                                      \
  } while (0)
#define CHECK_PUT(TYPE, put, length, expected) CHECK_MOVE(TYPE, put, shmem_barrier_all, length, expected)
#define CHECK_GET(TYPE, get, length, expected) CHECK_MOVE(TYPE, get, shmem_quiet, length, expected)

#define FROM_LEFT pattern(left(), i)
#define FROM_RIGHT pattern(right(), i)
/* Element i came from 2 * i and went to 3 * i. */
#define STRIDED(pe) (i % 3 == 0 ? pattern(pe, i / 3 * 2) : 99)
/* Blocks of 2: from 4 * b to 3 * b. */
#define BLOCKS(pe) (i % 3 < 2 ? pattern(pe, i / 3 * 4 + i % 3) : 99)

#define TEST_TYPE(NAME, TYPE)                                                                               \
  static void test_##NAME(void* dest_memory, void* source_memory) {                                         \
    TYPE* dest = (TYPE*)dest_memory;                                                                        \
    TYPE* source = (TYPE*)source_memory;                                                                    \
    CHECK_PUT(TYPE, shmem_##NAME##_put(dest, source, kCount, right()), kCount, FROM_LEFT);                  \
    CHECK_PUT(TYPE, shmem_ctx_##NAME##_put(ctx, dest, source, kCount, right()), kCount, FROM_LEFT);         \
    CHECK_PUT(TYPE, shmem_##NAME##_put_nbi(dest, source, kCount, right()), kCount, FROM_LEFT);              \
    CHECK_PUT(TYPE, shmem_ctx_##NAME##_put_nbi(ctx, dest, source, kCount, right()), kCount, FROM_LEFT);     \
    CHECK_PUT(TYPE, shmem_##NAME##_p(dest, source[0], right()), 1, FROM_LEFT);                              \
    CHECK_PUT(TYPE, shmem_ctx_##NAME##_p(ctx, dest, source[0], right()), 1, FROM_LEFT);                     \
    CHECK_PUT(TYPE, shmem_##NAME##_iput(dest, source, 3, 2, 5, right()), 13, STRIDED(left()));              \
    CHECK_PUT(TYPE, shmem_ctx_##NAME##_iput(ctx, dest, source, 3, 2, 5, right()), 13, STRIDED(left()));     \
    CHECK_PUT(TYPE, shmem_##NAME##_ibput(dest, source, 3, 4, 2, 4, right()), 11, BLOCKS(left()));           \
    CHECK_PUT(TYPE, shmem_ctx_##NAME##_ibput(ctx, dest, source, 3, 4, 2, 4, right()), 11, BLOCKS(left()));  \
    shmem_##NAME##_put(dest, source, 0, right());                                                           \
    CHECK_GET(TYPE, shmem_##NAME##_get(dest, source, kCount, right()), kCount, FROM_RIGHT);                 \
    CHECK_GET(TYPE, shmem_ctx_##NAME##_get(ctx, dest, source, kCount, right()), kCount, FROM_RIGHT);        \
    CHECK_GET(TYPE, shmem_##NAME##_get_nbi(dest, source, kCount, right()), kCount, FROM_RIGHT);             \
    CHECK_GET(TYPE, shmem_ctx_##NAME##_get_nbi(ctx, dest, source, kCount, right()), kCount, FROM_RIGHT);    \
    CHECK_GET(TYPE, dest[0] = shmem_##NAME##_g(source, right()), 1, FROM_RIGHT);                            \
    CHECK_GET(TYPE, dest[0] = shmem_ctx_##NAME##_g(ctx, source, right()), 1, FROM_RIGHT);                   \
    CHECK_GET(TYPE, shmem_##NAME##_iget(dest, source, 3, 2, 5, right()), 13, STRIDED(right()));             \
    CHECK_GET(TYPE, shmem_ctx_##NAME##_iget(ctx, dest, source, 3, 2, 5, right()), 13, STRIDED(right()));    \
    CHECK_GET(TYPE, shmem_##NAME##_ibget(dest, source, 3, 4, 2, 4, right()), 11, BLOCKS(right()));          \
    CHECK_GET(TYPE, shmem_ctx_##NAME##_ibget(ctx, dest, source, 3, 4, 2, 4, right()), 11, BLOCKS(right())); \
  }
SHMEM_RMA_TYPES(TEST_TYPE)

/* The generic names, for each type once. */
#define TEST_GENERIC(NAME, TYPE)                                                            \
  static void test_generic_##NAME(void* dest_memory, void* source_memory) {                 \
    TYPE* dest = (TYPE*)dest_memory;                                                        \
    TYPE* source = (TYPE*)source_memory;                                                    \
    const TYPE* from = source;                                                              \
    CHECK_PUT(TYPE, shmem_put(dest, source, kCount, right()), kCount, FROM_LEFT);           \
    CHECK_PUT(TYPE, shmem_put(ctx, dest, from, kCount, right()), kCount, FROM_LEFT);        \
    CHECK_PUT(TYPE, shmem_put_nbi(ctx, dest, from, kCount, right()), kCount, FROM_LEFT);    \
    CHECK_PUT(TYPE, shmem_p(dest, source[0], right()), 1, FROM_LEFT);                       \
    CHECK_PUT(TYPE, shmem_p(ctx, dest, source[0], right()), 1, FROM_LEFT);                  \
    CHECK_PUT(TYPE, shmem_iput(dest, from, 3, 2, 5, right()), 13, STRIDED(left()));         \
    CHECK_PUT(TYPE, shmem_ibput(ctx, dest, from, 3, 4, 2, 4, right()), 11, BLOCKS(left())); \
    CHECK_GET(TYPE, shmem_get(dest, source, kCount, right()), kCount, FROM_RIGHT);          \
    CHECK_GET(TYPE, shmem_get_nbi(ctx, dest, from, kCount, right()), kCount, FROM_RIGHT);   \
    CHECK_GET(TYPE, dest[0] = shmem_g(from, right()), 1, FROM_RIGHT);                       \
    CHECK_GET(TYPE, dest[0] = shmem_g(ctx, source, right()), 1, FROM_RIGHT);                \
    CHECK_GET(TYPE, shmem_iget(ctx, dest, from, 3, 2, 5, right()), 13, STRIDED(right()));   \
    CHECK_GET(TYPE, shmem_ibget(dest, from, 3, 4, 2, 4, right()), 11, BLOCKS(right()));     \
  }
TEST_RMA_BASIC_TYPES(TEST_GENERIC)

/* The routines by element size, on char arrays. */
#define TEST_SIZE(BITS, BYTES)                                                                       \
  static void test_size_##BITS(void* dest_memory, void* source_memory) {                             \
    char* dest = (char*)dest_memory;                                                                 \
    char* source = (char*)source_memory;                                                             \
    const size_t all = 3 * BYTES;                                                                    \
    CHECK_PUT(char, shmem_put##BITS(dest, source, 3, right()), all, FROM_LEFT);                      \
    CHECK_PUT(char, shmem_ctx_put##BITS(ctx, dest, source, 3, right()), all, FROM_LEFT);             \
    CHECK_PUT(char, shmem_put##BITS##_nbi(dest, source, 3, right()), all, FROM_LEFT);                \
    CHECK_PUT(char, shmem_ctx_put##BITS##_nbi(ctx, dest, source, 3, right()), all, FROM_LEFT);       \
    CHECK_PUT(char, shmem_iput##BITS(dest, source, 1, 1, 3, right()), all, FROM_LEFT);               \
    CHECK_PUT(char, shmem_ctx_iput##BITS(ctx, dest, source, 1, 1, 3, right()), all, FROM_LEFT);      \
    CHECK_PUT(char, shmem_ibput##BITS(dest, source, 1, 1, 1, 3, right()), all, FROM_LEFT);           \
    CHECK_PUT(char, shmem_ctx_ibput##BITS(ctx, dest, source, 3, 3, 3, 1, right()), all, FROM_LEFT);  \
    CHECK_GET(char, shmem_get##BITS(dest, source, 3, right()), all, FROM_RIGHT);                     \
    CHECK_GET(char, shmem_ctx_get##BITS(ctx, dest, source, 3, right()), all, FROM_RIGHT);            \
    CHECK_GET(char, shmem_get##BITS##_nbi(dest, source, 3, right()), all, FROM_RIGHT);               \
    CHECK_GET(char, shmem_ctx_get##BITS##_nbi(ctx, dest, source, 3, right()), all, FROM_RIGHT);      \
    CHECK_GET(char, shmem_iget##BITS(dest, source, 1, 1, 3, right()), all, FROM_RIGHT);              \
    CHECK_GET(char, shmem_ctx_iget##BITS(ctx, dest, source, 1, 1, 3, right()), all, FROM_RIGHT);     \
    CHECK_GET(char, shmem_ibget##BITS(dest, source, 1, 1, 1, 3, right()), all, FROM_RIGHT);          \
    CHECK_GET(char, shmem_ctx_ibget##BITS(ctx, dest, source, 3, 3, 3, 1, right()), all, FROM_RIGHT); \
  }
SHMEM_SIZES(TEST_SIZE)

static void test_bytes(void* dest_memory, void* source_memory) {
  char* dest = (char*)dest_memory;
  char* source = (char*)source_memory;
  CHECK_PUT(char, shmem_putmem(dest, source, 41, right()), 41, FROM_LEFT);
  CHECK_PUT(char, shmem_ctx_putmem(ctx, dest, source, 41, right()), 41, FROM_LEFT);
  CHECK_PUT(char, shmem_putmem_nbi(dest, source, 41, right()), 41, FROM_LEFT);
  CHECK_PUT(char, shmem_ctx_putmem_nbi(ctx, dest, source, 41, right()), 41, FROM_LEFT);
  CHECK_GET(char, shmem_getmem(dest, source, 41, right()), 41, FROM_RIGHT);
  CHECK_GET(char, shmem_ctx_getmem(ctx, dest, source, 41, right()), 41, FROM_RIGHT);
  CHECK_GET(char, shmem_getmem_nbi(dest, source, 41, right()), 41, FROM_RIGHT);
  CHECK_GET(char, shmem_ctx_getmem_nbi(ctx, dest, source, 41, right()), 41, FROM_RIGHT);
}

/* PE numbers of a context are those of its team. */
static void test_context_of_a_team(void) {
  shmem_team_t odd;
  static long word;
  const int n = shmem_n_pes() / 2;
  if (n == 0) {
    return;
  }
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n, NULL, 0, &odd) == 0);
  if (odd != SHMEM_TEAM_INVALID) {
    shmem_ctx_t of_odd;
    shmem_team_t back;
    CHECK(shmem_team_create_ctx(odd, SHMEM_CTX_SERIALIZED, &of_odd) == 0);
    CHECK(shmem_ctx_get_team(of_odd, &back) == 0 && back == odd);
    shmem_ctx_long_p(of_odd, &word, 5 + shmem_my_pe(), (shmem_team_my_pe(odd) + 1) % n);
    shmem_ctx_quiet(of_odd);
    const int target = 0;
    shmem_ctx_pe_quiet(of_odd, &target, 1);
    shmem_ctx_fence(of_odd);
    shmem_team_sync(odd);
    CHECK(word == 5 + 1 + 2 * ((shmem_team_my_pe(odd) + n - 1) % n));
    shmem_ctx_destroy(of_odd);
    shmem_team_destroy(odd);
  } else {
    CHECK(word == 0);
    shmem_ctx_t none = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &none) != 0 && none == SHMEM_CTX_INVALID);
  }
}

PE_PART(rma) {
  shmem_init();
  CHECK(shmem_ctx_create(0, &ctx) == 0);
#define RUN(NAME, TYPE) on_heap_and_globals(test_##NAME);
  SHMEM_RMA_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) on_heap_and_globals(test_generic_##NAME);
  TEST_RMA_BASIC_TYPES(RUN)
#undef RUN
#define RUN(BITS, BYTES) on_heap_and_globals(test_size_##BITS);
  SHMEM_SIZES(RUN)
  on_heap_and_globals(test_bytes);
  test_context_of_a_team();
  shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
  shmem_ctx_session_stop(ctx);
  shmem_ctx_destroy(ctx);
  shmem_finalize();
  return 0;
}
