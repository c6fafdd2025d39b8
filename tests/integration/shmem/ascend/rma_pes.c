/* SPDX-License-Identifier: Apache-2.0 */
/* Ascend SHMEM's puts and gets on the host: every call, of every type and size. */
#include "check.h"

enum { kCount = 13, kRoom = 128 };

/* Every PE fills `source`, moves elements, and checks `dest`: `expected` for each i, then the previous contents. */
#define CHECK_MOVE(T, move, length, expected)                              \
  do {                                                                     \
    for (size_t i = 0; i < kRoom; ++i) {                                   \
      source[i] = (T)pattern(aclshmem_my_pe(), i);                         \
      dest[i] = (T)99;                                                     \
    }                                                                      \
    aclshmem_barrier_all();                                                \
    move;                                                                  \
    aclshmem_barrier_all();                                                \
    for (size_t i = 0; i < (length); ++i) CHECK(dest[i] == (T)(expected)); \
    CHECK(dest[length] == (T)99);                                          \
    aclshmem_barrier_all();                                                \
  } while (0)
#define FROM_LEFT pattern(left(), i)
#define FROM_RIGHT pattern(right(), i)
/* Element i came from 2 * i and went to 3 * i. */
#define STRIDED(pe) (i % 3 == 0 ? pattern(pe, i / 3 * 2) : 99)

#define TEST_TYPE(NAME, T)                                                                                        \
  static void test_##NAME(void* dest_memory, void* source_memory) {                                               \
    T* dest = (T*)dest_memory;                                                                                    \
    T* source = (T*)source_memory;                                                                                \
    CHECK_MOVE(T, aclshmem_##NAME##_put(dest, source, kCount, right()), kCount, FROM_LEFT);                       \
    CHECK_MOVE(T, aclshmem_##NAME##_get(dest, source, kCount, right()), kCount, FROM_RIGHT);                      \
    CHECK_MOVE(T, aclshmem_##NAME##_put_nbi(dest, source, kCount, right()), kCount, FROM_LEFT);                   \
    CHECK_MOVE(T, aclshmem_##NAME##_get_nbi(dest, source, kCount, right()), kCount, FROM_RIGHT);                  \
    CHECK_MOVE(T, aclshmem_##NAME##_iput(dest, source, 3, 2, kCount, right()), 3 * kCount - 2, STRIDED(left()));  \
    CHECK_MOVE(T, aclshmem_##NAME##_iget(dest, source, 3, 2, kCount, right()), 3 * kCount - 2, STRIDED(right())); \
    CHECK_MOVE(T, aclshmem_##NAME##_p(dest, source[5], right()), 1, pattern(left(), 5));                          \
    CHECK_MOVE(T, dest[0] = aclshmem_##NAME##_g(source + 5, right()), 1, pattern(right(), 5));                    \
    CHECK_MOVE(T, aclshmem_##NAME##_put(dest, NULL, 0, right());                                                  \
               dest[0] = source[0], 1, pattern(aclshmem_my_pe(), 0));                                             \
  }
ACLSHMEM_HOST_TYPES(TEST_TYPE)

/* Elements of BYTES bytes, each byte of which is checked. */
#define TEST_BITS(BITS, BYTES)                                                                               \
  static void test_##BITS(void* dest_memory, void* source_memory) {                                          \
    char* dest = (char*)dest_memory;                                                                         \
    char* source = (char*)source_memory;                                                                     \
    enum { kBytes = kRoom / BYTES / 4 * BYTES };                                                             \
    const size_t elements = kBytes / BYTES;                                                                  \
    const uint32_t count = (uint32_t)elements;                                                               \
    CHECK_MOVE(char, aclshmem_put##BITS(dest, source, count, right()), kBytes, FROM_LEFT);                   \
    CHECK_MOVE(char, aclshmem_get##BITS(dest, source, count, right()), kBytes, FROM_RIGHT);                  \
    CHECK_MOVE(char, aclshmem_put##BITS##_nbi(dest, source, count, right()), kBytes, FROM_LEFT);             \
    CHECK_MOVE(char, aclshmem_get##BITS##_nbi(dest, source, count, right()), kBytes, FROM_RIGHT);            \
    CHECK_MOVE(char, aclshmem_iput##BITS(dest, source, 2, 1, elements, right()), (elements * 2 - 1) * BYTES, \
               i / BYTES % 2 == 0 ? pattern(left(), i / BYTES / 2 * BYTES + i % BYTES) : 99);                \
    CHECK_MOVE(char, aclshmem_iget##BITS(dest, source, 1, 2, elements, right()), kBytes,                     \
               pattern(right(), i / BYTES * 2 * BYTES + i % BYTES));                                         \
  }
SHMEM_SIZES(TEST_BITS)

static void test_mem(void* dest_memory, void* source_memory) {
  char* dest = (char*)dest_memory;
  char* source = (char*)source_memory;
  CHECK_MOVE(char, aclshmem_putmem(dest, source, kCount, right()), kCount, FROM_LEFT);
  CHECK_MOVE(char, aclshmem_getmem(dest, source, kCount, right()), kCount, FROM_RIGHT);
  CHECK_MOVE(char, aclshmem_putmem_nbi(dest, source, kCount, right()), kCount, FROM_LEFT);
  CHECK_MOVE(char, aclshmem_getmem_nbi(dest, source, kCount, right()), kCount, FROM_RIGHT);
}

/* Host calls run after all work that was queued on stream NULL before. */
static void test_default_stream(void* dest_memory, void* source_memory) {
  enum { kMany = 1 << 20 };
  int* dest = (int*)dest_memory;
  char* large = (char*)aclshmem_calloc(2, kMany);
  CHECK(large != NULL);
  for (int round = 0; round < 20; ++round) {
    memset(large, round, kMany);
    aclshmemx_putmem_on_stream(large + kMany, large, kMany, right(), NULL);
    aclshmem_int32_p((int32_t*)dest, round + 1, right()); /* signals that the copy is complete */
    aclshmem_int32_wait_until((int32_t*)dest, ACLSHMEM_CMP_EQ, round + 1);
    CHECK(large[kMany] == round && large[2 * kMany - 1] == round);
    aclshmemx_putmem_on_stream(large + kMany, large, kMany, right(), NULL);
    aclshmem_barrier_all();
  }
  *dest = 0;
  aclshmem_free(large);
  (void)source_memory;
}

static void test_configs(void) {
  CHECK(aclshmemx_set_mte_config(0, 4096, 0) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_set_sdma_config(0, 64, 0) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_set_rdma_config(0, 127, 0) == ACLSHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_rdma_config(1024, 128, 3) == ACLSHMEM_SUCCESS);
  CHECK(aclshmemx_set_udma_config(0, 127, 0) == ACLSHMEM_INVALID_VALUE);
  CHECK(aclshmemx_set_udma_config(0, 128, 0) == ACLSHMEM_SUCCESS);
  CHECK(shmemx_engine(SHMEMX_ENGINE_RDMA)->scratch == 1024 && shmemx_engine(SHMEMX_ENGINE_RDMA)->sync_id == 3);
}

/* Mistakes that end the job with a message that names the call. */
static void mistake(const char* name) {
  int32_t outside[2] = {0, 0};
  int32_t* inside = (int32_t*)aclshmem_calloc(2, sizeof(int32_t));
  if (strcmp(name, "pe") == 0) {
    aclshmem_int32_p(inside, 1, aclshmem_n_pes());
  }
  if (strcmp(name, "address") == 0) {
    aclshmem_int32_put(outside, inside, 1, 0);
  }
  if (strcmp(name, "stride") == 0) {
    aclshmem_int32_iget(outside, inside, 0, 1, 2, 0);
  }
  if (strcmp(name, "operation") == 0) {
    aclshmem_put32_signal(inside, outside, 1, inside + 1, 1, 2, 0);
  }
  if (strcmp(name, "alignment") == 0) {
    aclshmemx_putmem_signal(inside, outside, 4, (char*)inside + 1, 1, 0, 0);
  }
  if (strcmp(name, "comparison") == 0) {
    aclshmem_signal_wait_until(inside, 6, 0);
  }
  if (strcmp(name, "wait") == 0) {
    aclshmem_int32_wait_until(outside, ACLSHMEM_CMP_EQ, 1);
  }
}

PE_PART(rma) {
  CHECK(aclshmemx_set_mte_config(0, 4096, 0) == ACLSHMEM_NOT_INITED);
  CHECK(aclshmemx_set_sdma_config(0, 64, 0) == ACLSHMEM_NOT_INITED);
  shmem_init();
  if (argc == 2) {
    mistake(argv[1]);
    return 0;
  }
  void* dest = aclshmem_calloc(kRoom, 16);
  void* source = aclshmem_calloc(kRoom, 16);
  CHECK(dest != NULL && source != NULL);
#define RUN(NAME, ANY) test_##NAME(dest, source);
  ACLSHMEM_HOST_TYPES(RUN)
  SHMEM_SIZES(RUN)
  test_mem(dest, source);
  test_default_stream(dest, source);
  test_configs();
  aclshmem_free(source);
  aclshmem_free(dest);
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  return 0;
}
