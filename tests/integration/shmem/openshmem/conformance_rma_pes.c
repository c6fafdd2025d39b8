/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 4, 9.6 and 9.12: buffers, nothing to copy, one-sidedness, order and completion. */
#include <time.h>

#include "conformance_check.h"

enum { kMany = 100000 };
static char on_global[kMany + 64];
static char* on_heap;

/* Puts return when the source may be changed: small, medium and large ones, contiguous and strided. */
static void test_source_may_be_changed(void) {
  static const size_t sizes[] = {1, 8, 16, 17, 200, 4096, kMany};
  static char source[kMany];
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int kind = 0; kind < (sizes[i] <= 4096 ? 4 : 2); ++kind) { /* strided copies go one by one to other nodes */
      memset(on_heap, 0, kMany);
      memset(source, me + 1, sizes[i]);
      shmem_barrier_all();
      if (kind == 0) {
        shmem_putmem(on_heap, source, sizes[i], right());
      } else if (kind == 1) {
        shmem_char_put(on_heap, source, sizes[i], right());
      } else if (kind == 2) {
        shmem_char_iput(on_heap, source, 1, 1, sizes[i], right());
      } else {
        shmem_char_ibput(on_heap, source, 1, 1, 1, sizes[i], right());
      }
      memset(source, 99, sizes[i]);
      shmem_barrier_all();
      for (size_t k = 0; k < sizes[i]; ++k) {
        EXPECT(on_heap[k] == left() + 1, "a put has copied its source when it returns");
      }
      EXPECT(on_heap[sizes[i]] == 0, "a put writes no more than its elements");
    }
  }
}

/* Section 4.2: the objects of one call may be in different symmetric memory; the local one may be in any memory. */
static void test_memory_of_all_kinds(void) {
  static const char constant[] = "from a constant";
  char* private_memory = (char*)malloc(64);
  char on_stack[64];
  EXPECT(private_memory != NULL, "there is memory");
  memset(private_memory, me, 64);
  memset(on_global, 0, 256);
  memset(on_heap, 0, 256);
  shmem_barrier_all();
  shmem_putmem(on_heap, constant, sizeof constant, right());
  shmem_putmem(on_global, private_memory, 64, right());
  shmem_quiet();
  shmem_putmem(on_global + 64, on_heap + 64, 64, right());
  shmem_putmem(on_heap + 128, on_global + 128, 64, right());
  shmem_barrier_all();
  EXPECT(strcmp(on_heap, constant) == 0, "a put copies from a constant");
  EXPECT(on_global[63] == left(), "a put copies from private memory to a variable");
  shmem_getmem(on_stack, on_heap, sizeof constant, right());
  EXPECT(strcmp(on_stack, constant) == 0, "a get copies to the stack");
  shmem_getmem(private_memory, on_global, 64, right());
  EXPECT(private_memory[0] == me && private_memory[63] == me, "a get copies to private memory");
  shmem_getmem(on_heap + 200, on_global, 40, right());
  EXPECT(on_heap[200] == me, "a get copies from a variable to the heap");
  shmem_getmem(on_global + 200, on_heap, sizeof constant, me);
  EXPECT(strcmp(on_global + 200, constant) == 0, "a PE reaches its own objects");
  free(private_memory);
  shmem_barrier_all();
}

/* Annex C: no elements may come from, and go to, NULL. */
static void test_nothing(void) {
  shmem_putmem(NULL, NULL, 0, right());
  shmem_getmem(NULL, NULL, 0, right());
  shmem_long_put(NULL, NULL, 0, right());
  shmem_long_get(NULL, NULL, 0, right());
  shmem_put64_nbi(NULL, NULL, 0, right());
  shmem_getmem_nbi(NULL, NULL, 0, right());
  shmem_long_iput(NULL, NULL, 1, 1, 0, right());
  shmem_long_iget(NULL, NULL, 1, 1, 0, right());
  shmem_long_ibput(NULL, NULL, 1, 1, 1, 0, right());
  shmem_long_ibget(NULL, NULL, 1, 1, 1, 0, right());
  on_heap[0] = 5;
  shmem_barrier_all();
  shmem_putmem(on_heap, on_global, 0, right());
  shmem_long_iput((long*)(void*)on_heap, (long*)(void*)on_global, 2, 2, 0, right());
  shmem_barrier_all();
  EXPECT(on_heap[0] == 5, "a put of no elements changes nothing");
}

/* Bytes at any address, and not one more. */
static void test_bytes_at_any_address(void) {
  char source[96];
  for (size_t offset = 0; offset < 9; ++offset) {
    for (size_t length = 1; length < 40; length += 3) {
      memset(on_heap, 100, 64);
      memset(source, me, sizeof source);
      shmem_barrier_all();
      shmem_putmem(on_heap + offset, source + 3, length, right());
      shmem_barrier_all();
      for (size_t i = 0; i < 64; ++i) {
        EXPECT(on_heap[i] == (i >= offset && i < offset + length ? left() : 100),
               "a put writes its bytes and no other");
      }
      shmem_getmem(source + offset, on_heap + offset, length, right());
      EXPECT(source[offset] == me && source[offset + length - 1] == me, "a get reads from any address");
      shmem_barrier_all();
    }
  }
}

/* Section 4.1: transfers end without calls of the PE that they reach. PE 0 makes none until the others are done. */
static void test_progress(void) {
  static volatile long done;
  static long counter, data[64];
  shmem_barrier_all();
  if (me == 0) {
    const time_t limit = time(NULL) + 60;
    while (done < pes - 1 && time(NULL) < limit) {
    }
    EXPECT(done == pes - 1, "transfers and atomics end while their target makes no calls");
  } else {
    for (int i = 0; i < 100; ++i) {
      long value = me * 1000L + i;
      shmem_long_put(&data[me % 64], &value, 1, 0);
      shmem_quiet();
      EXPECT(shmem_long_g(&data[me % 64], 0) == value || pes > 64, "a get ends, and sees the put before quiet");
      shmem_long_atomic_fetch_inc(&counter, 0);
    }
    shmem_long_atomic_inc((long*)&done, 0);
  }
  shmem_barrier_all();
  EXPECT(shmem_long_g(&counter, 0) == 100L * (pes - 1), "all atomics have been done");
}

/* Section 9.12: what was done before a fence arrives before what is done after it, of every kind. */
static void test_fence(void) {
  static long data[300], count, flag;
  long source[300];
  for (long round = 1; round <= 60; ++round) {
    for (int i = 0; i < 300; ++i) {
      source[i] = round;
    }
    shmem_long_put_nbi(data, source, 100, right());
    shmem_long_iput(data + 100, source, 2, 2, 50, right());
    shmem_long_atomic_inc(&count, right());
    long* direct = (long*)shmem_ptr(data + 299, right());
    if (direct != NULL) {
      *direct = round;
    }
    shmem_fence();
    if (round % 2 == 0) {
      shmem_long_atomic_set(&flag, round, right());
    } else {
      shmem_long_atomic_inc(&flag, right());
    }
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
    EXPECT(data[0] == round && data[99] == round, "nonblocking puts before a fence arrive first");
    EXPECT(data[100] == round && data[198] == round, "strided puts before a fence arrive first");
    EXPECT(shmem_long_atomic_fetch(&count, me) == round, "atomics before a fence arrive first");
    EXPECT(shmem_ptr(data, left()) == NULL || data[299] == round, "stores before a fence arrive first");
    shmem_barrier_all();
  }
}

/* After quiet, a third PE that hears of it sees what was put on another one. */
static void test_quiet_is_for_all(void) {
  static long data[100], flag;
  long source[100];
  const int third = (me + 2) % pes;
  for (long round = 1; round <= 60; ++round) {
    for (int i = 0; i < 100; ++i) {
      source[i] = round * 100 + me;
    }
    shmem_long_put_nbi(data, source, 100, right());
    if (round % 2 == 0) {
      shmem_quiet();
    } else {
      const int target = right();
      shmem_pe_quiet(&target, 1);
    }
    shmem_long_atomic_set(&flag, round, third);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, round);
    const int teller = (me + 2 * pes - 2) % pes;
    EXPECT(shmem_long_g(data + 99, (teller + 1) % pes) == round * 100 + teller,
           "puts that were completed by quiet are visible to every PE");
    shmem_barrier_all();
  }
}

/* shmem_quiet completes nonblocking gets and fetches, and the buffer may then be used. */
static void test_quiet_completes_gets(void) {
  static long data[1000], counter;
  long dest[1000], fetched = -1;
  for (int i = 0; i < 1000; ++i) {
    data[i] = me * 1000L + i;
  }
  shmem_barrier_all();
  shmem_long_get_nbi(dest, data, 500, right());
  shmem_long_get_nbi(dest + 500, data + 500, 500, right());
  shmem_long_atomic_fetch_add_nbi(&fetched, &counter, 3, right());
  shmem_quiet();
  EXPECT(dest[0] == right() * 1000L && dest[999] == right() * 1000L + 999, "quiet completes nonblocking gets");
  EXPECT(fetched == 0, "quiet completes nonblocking fetches");
  shmem_barrier_all();
  EXPECT(counter == 3, "the nonblocking fetch has added");
}

PE_PART(conformance_rma) {
  start();
  on_heap = (char*)shmem_calloc(1, kMany + 64);
  EXPECT(on_heap != NULL, "there is memory in the heap");
  test_source_may_be_changed();
  test_memory_of_all_kinds();
  test_nothing();
  test_bytes_at_any_address();
  test_progress();
  test_fence();
  test_quiet_is_for_all();
  test_quiet_completes_gets();
  shmem_free(on_heap);
  shmem_finalize();
  return 0;
}
