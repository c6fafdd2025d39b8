/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.3: barriers of the calls on the symmetric heap, alignment, contents, failures. */
#include <stddef.h>

#include "conformance_check.h"

#ifdef __cplusplus
static const size_t kAnyAlignment = alignof(max_align_t);
#else
static const size_t kAnyAlignment = _Alignof(max_align_t);
#endif

enum { kTransfer = 20000 };
static long entered; /* on PE 0: how often PEs have come to a call */
static long inbox[kTransfer], outbox[kTransfer];
static long calls;

/* Before a call: this PE comes, and has a transfer on its way. */
static void enter(void) {
  come_late((int)calls);
  ++calls;
  for (int i = 0; i < kTransfer; ++i) {
    outbox[i] = calls;
  }
  shmem_long_atomic_inc(&entered, 0);
  shmem_long_put_nbi(inbox, outbox, kTransfer, right());
}

/* After a call that contains a barrier. */
static void expect_barrier(const char* of_call) {
  char text[160];
  snprintf(text, sizeof text, "%s returns when all PEs have come", of_call);
  EXPECT(shmem_long_atomic_fetch(&entered, 0) >= calls * pes, text);
  snprintf(text, sizeof text, "%s completes the transfers of all PEs on the default context", of_call);
  EXPECT(inbox[0] == calls && inbox[kTransfer - 1] == calls, text);
  shmem_sync_all();
}

static void test_barriers(void) {
  for (int round = 0; round < pes + 2; ++round) {
    enter();
    void* block = shmem_malloc(100);
    expect_barrier("shmem_malloc");
    enter();
    block = shmem_realloc(block, 100000);
    expect_barrier("shmem_realloc to more");
    enter();
    shmem_free(block);
    expect_barrier("shmem_free");
    enter();
    block = shmem_calloc(10, 10);
    expect_barrier("shmem_calloc");
    enter();
    EXPECT(shmem_realloc(block, 0) == NULL, "shmem_realloc to 0 bytes returns NULL");
    expect_barrier("shmem_realloc to 0");
    enter();
    block = shmem_align(128, 100);
    expect_barrier("shmem_align");
    shmem_free(block);
    enter();
    block = shmem_malloc_with_hints(100, SHMEM_MALLOC_SIGNAL_REMOTE);
    expect_barrier("shmem_malloc_with_hints");
    shmem_free(block);
    enter();
    block = shmem_realloc(NULL, 100);
    expect_barrier("shmem_realloc of NULL");
    shmem_free(block);
  }
}

static void test_alignment(void) {
  for (size_t size = 1; size < 200; size = size * 2 + 1) {
    void* blocks[4];
    blocks[0] = shmem_malloc(size);
    blocks[1] = shmem_calloc(size, 1);
    blocks[2] = shmem_malloc_with_hints(size, 0);
    blocks[3] = shmem_realloc(shmem_malloc(size), size + 1);
    for (int i = 0; i < 4; ++i) {
      EXPECT(blocks[i] != NULL && (uintptr_t)blocks[i] % kAnyAlignment == 0, "a block is aligned for every type");
    }
    for (int i = 0; i < 4; ++i) {
      shmem_free(blocks[i]);
    }
  }
}

/* Blocks of many sizes do not overlap, correspond on all PEs, and can be used as soon as the call returns. */
static void test_blocks(void) {
  enum { kBlocks = 20 };
  unsigned char* blocks[kBlocks];
  unsigned char contents[kBlocks * 17 + 1];
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = (unsigned char*)(i % 2 == 0 ? shmem_malloc((size_t)i * 17 + 1) : shmem_align(64, (size_t)i * 17 + 1));
    memset(contents, me * kBlocks + i, sizeof contents);
    shmem_putmem(blocks[i], contents, (size_t)i * 17 + 1, right());
  }
  shmem_barrier_all();
  for (int i = 0; i < kBlocks; ++i) {
    for (int j = 0; j <= i * 17; ++j) {
      EXPECT(blocks[i][j] == (unsigned char)(left() * kBlocks + i),
             "the left PE's put is in the block of the same call");
    }
  }
  for (int i = 0; i < kBlocks; i += 2) {
    shmem_free(blocks[i]);
  }
  for (int i = 1; i < kBlocks; i += 2) {
    EXPECT(blocks[i][i * 17] == (unsigned char)(left() * kBlocks + i), "freeing a block changes no other block");
    shmem_free(blocks[i]);
  }
}

/* The largest power of two that can be had can be had once, and again after it is freed. */
static void test_free_gives_memory_back(void) {
  size_t size = (size_t)1 << 30;
  void* block = shmem_malloc(size);
  while (block == NULL && size > 1) {
    size /= 2;
    block = shmem_malloc(size);
  }
  EXPECT(block != NULL, "the heap has room for something");
  for (int round = 0; round < 4; ++round) {
    shmem_free(block);
    block = round % 2 == 0 ? shmem_malloc(size) : shmem_align(4096, size / 2);
    EXPECT(block != NULL, "memory that was freed can be allocated again");
  }
  shmem_free(block);
}

static void test_realloc(void) {
  enum { kWords = 1000 };
  long* block = (long*)shmem_malloc(kWords * sizeof(long));
  long* behind = (long*)shmem_malloc(sizeof(long));
  long source[kWords];
  for (long i = 0; i < kWords; ++i) {
    source[i] = me * 10000L + i;
  }
  /* Other PEs' transfers to the block are part of its contents. */
  come_late(0);
  shmem_long_put_nbi(block, source, kWords, right());
  block = (long*)shmem_realloc(block, 50 * kWords * sizeof(long));
  EXPECT(block != NULL, "shmem_realloc finds room");
  for (long i = 0; i < kWords; ++i) {
    EXPECT(block[i] == left() * 10000L + i, "shmem_realloc to more keeps all contents");
  }
  EXPECT(shmem_realloc(block, (size_t)1 << 60) == NULL, "shmem_realloc without room returns NULL");
  for (long i = 0; i < kWords; ++i) {
    EXPECT(block[i] == left() * 10000L + i, "shmem_realloc without room changes nothing");
    EXPECT(i % 100 != 0 || shmem_long_g(block + i, right()) == me * 10000L + i, "the block is still symmetric");
  }
  block = (long*)shmem_realloc(block, 10 * sizeof(long));
  EXPECT(block != NULL && block[9] == left() * 10000L + 9, "shmem_realloc to less keeps what fits");
  shmem_free(behind);
  shmem_free(block);
}

/* Memory that was used before, also by other PEs, is zero in the whole block, on all PEs when the call returns. */
static void test_calloc(void) {
  enum { kWords = 5000 };
  for (int round = 0; round < 4; ++round) {
    long* dirty = (long*)shmem_malloc(kWords * sizeof(long));
    for (int i = 0; i < kWords; ++i) {
      dirty[i] = -1;
    }
    shmem_barrier_all();
    shmem_long_put(dirty, dirty + kWords / 2, kWords / 2, right());
    shmem_free(dirty);
    come_late(round);
    long* clean = (long*)shmem_calloc(kWords, sizeof(long));
    long all[kWords];
    shmem_long_get(all, clean, kWords, right());
    for (int i = 0; i < kWords; ++i) {
      EXPECT(all[i] == 0, "shmem_calloc returns when the block is zero on all PEs");
    }
    shmem_free(clean);
  }
}

static void* allocate(void* block) {
  *(void**)block = shmem_malloc(sizeof(long));
  return NULL;
}

/* Section 9.2: the heap belongs to the PE, whichever of its threads has called. */
static void test_threads_share_the_heap(void) {
  void* block = NULL;
  in_another_thread(allocate, &block);
  EXPECT(block != NULL, "another thread can allocate");
  shmem_long_p((long*)block, me, right());
  shmem_barrier_all();
  EXPECT(*(long*)block == left(), "all threads can use the block");
  shmem_free(block);
}

/* Section 8: the heap has room for as many bytes as SHMEM_SYMMETRIC_SIZE says. */
static int allocate_all(const char* bytes) {
  shmem_init();
  const int there = shmem_malloc(strtoul(bytes, NULL, 10)) != NULL;
  shmem_finalize();
  return there ? 0 : 1;
}

PE_PART(conformance_memory) {
  if (argc > 1) {
    return allocate_all(argv[1]);
  }
  int provided = -1;
  EXPECT(shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0, "the library starts");
  me = shmem_my_pe();
  pes = shmem_n_pes();
  test_barriers();
  test_alignment();
  test_blocks();
  test_free_gives_memory_back();
  test_realloc();
  test_calloc();
  test_threads_share_the_heap();
  shmem_finalize();
  return 0;
}
