/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 9.8 and 9.11: signals after puts and alone, in all kinds of memory, from all PEs at once. */
#include "conformance_check.h"

enum { kMany = 20000 };
static char data[kMany];
static uint64_t signal_word;
static uint64_t* signal_on_heap;
static char* data_on_heap;

/* A signal comes when all of its data have come, whatever memory they are in, and the source may be changed. */
static void test_data_come_first(void) {
  static const size_t sizes[] = {1, 8, 100, 4096, kMany};
  static char source[kMany];
  uint64_t round = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    for (int kind = 0; kind < 8; ++kind) {
      char* to = kind % 2 == 0 ? data : data_on_heap;
      uint64_t* word = kind / 2 % 2 == 0 ? &signal_word : signal_on_heap;
      const size_t n = sizes[i];
      memset(to, 0, n);
      memset(source, me + 1, n);
      *word = round;
      shmem_barrier_all();
      ++round;
      if (kind < 4) {
        shmem_putmem_signal(to, source, n, word, round, SHMEM_SIGNAL_SET, right());
        memset(source, 99, n);
      } else {
        shmem_putmem_signal_nbi(to, source, n, word, 1, SHMEM_SIGNAL_ADD, right());
      }
      EXPECT(shmem_signal_wait_until(word, SHMEM_CMP_EQ, round) == round, "the wait returns the signal's value");
      for (size_t k = 0; k < n; ++k) {
        EXPECT(to[k] == left() + 1, "the data are there when the signal is");
      }
      shmem_quiet();
    }
  }
  shmem_barrier_all();
}

/* The signal is changed even if no data go with it. */
static void test_no_data(void) {
  signal_word = 0;
  shmem_barrier_all();
  shmem_putmem_signal(NULL, NULL, 0, &signal_word, 5, SHMEM_SIGNAL_SET, right());
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_NE, 0) == 5, "a put of nothing sets its signal");
  shmem_barrier_all();
  shmem_long_put_signal_nbi(NULL, NULL, 0, &signal_word, 2, SHMEM_SIGNAL_ADD, right());
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 5) == 7,
         "a nonblocking put of nothing adds to its signal");
  shmem_barrier_all();
}

/* Every comparison, with values above and below; the value that is returned satisfies it. */
static void test_comparisons(void) {
  signal_word = 10;
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, 10) == 10, "10 EQ 10");
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_NE, 9) == 10, "10 NE 9");
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 9) == 10, "10 GT 9");
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, 10) == 10, "10 GE 10");
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_LT, 11) == 10, "10 LT 11");
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_LE, 10) == 10, "10 LE 10");
  signal_word = UINT64_MAX;
  EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GT, 1) == UINT64_MAX, "signals are unsigned");
  EXPECT(shmem_signal_fetch(&signal_word) == UINT64_MAX, "shmem_signal_fetch returns the whole value");
  shmem_barrier_all();
}

/* Signals from all PEs at once are atomic, with each other and with puts that carry one. */
static void test_all_at_once(void) {
  static char bytes[64];
  signal_word = 0;
  shmem_barrier_all();
  const char byte = 1;
  for (int i = 0; i < 100; ++i) {
    shmem_signal_add(&signal_word, 1, 0);
    shmem_putmem_signal(&bytes[me % 64], &byte, 1, &signal_word, (uint64_t)1 << 32, SHMEM_SIGNAL_ADD, 0);
    shmem_putmem_signal_nbi(&bytes[me % 64], &byte, 1, &signal_word, 1, SHMEM_SIGNAL_ADD, 0);
  }
  shmem_quiet();
  if (me == 0) {
    const uint64_t all = ((uint64_t)100 << 32) * (uint64_t)pes + 200 * (uint64_t)pes;
    EXPECT(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, all) == all, "no signal is lost, and none doubled");
  }
  shmem_barrier_all();
  /* Values whose halves agree are never seen in part. */
  signal_word = 0;
  shmem_barrier_all();
  for (int i = 0; i < 1000; ++i) {
    shmem_signal_set(&signal_word, i % 2 == 0 ? 0 : (uint64_t)(me + 1) * 0x0000000100000001U, 0);
    if (me == 0) {
      const uint64_t seen = shmem_signal_fetch(&signal_word);
      EXPECT(seen >> 32 == (seen & 0xffffffffU), "a signal is set and fetched as a whole");
    }
  }
  shmem_barrier_all();
}

/* Signals work with all other waits and tests, and with atomics. */
static void test_other_waits(void) {
  enum { kSignals = 4 };
  static uint64_t words[kSignals];
  uint64_t values[kSignals] = {1, 2, 3, 4};
  size_t indices[kSignals];
  shmem_barrier_all();
  for (int i = 0; i < kSignals; ++i) {
    shmem_putmem_signal(&data[i], &data[i], 0, &words[i], (uint64_t)i + 1, SHMEM_SIGNAL_SET, right());
  }
  shmem_uint64_wait_until(&words[0], SHMEM_CMP_EQ, 1);
  shmem_uint64_wait_until_all(words, kSignals, NULL, SHMEM_CMP_NE, 0);
  shmem_uint64_wait_until_all_vector(words, kSignals, NULL, SHMEM_CMP_EQ, values);
  EXPECT(shmem_uint64_wait_until_any(words, kSignals, NULL, SHMEM_CMP_GE, 4) == 3, "any finds the signal that is 4");
  EXPECT(shmem_uint64_wait_until_some(words, kSignals, indices, NULL, SHMEM_CMP_GT, 2) == 2, "some finds 3 and 4");
  EXPECT(shmem_uint64_test(&words[2], SHMEM_CMP_EQ, 3) == 1, "test sees a signal");
  EXPECT(shmem_uint64_test_all(words, kSignals, NULL, SHMEM_CMP_LE, 4) == 1, "test_all sees signals");
  EXPECT(shmem_uint64_atomic_fetch(&words[3], me) == 4, "an atomic sees a signal");
  shmem_barrier_all();
}

PE_PART(conformance_signals) {
  start();
  signal_on_heap = (uint64_t*)shmem_calloc(1, sizeof(uint64_t));
  data_on_heap = (char*)shmem_calloc(1, kMany);
  EXPECT(signal_on_heap != NULL && data_on_heap != NULL, "there is memory in the heap");
  test_data_come_first();
  test_no_data();
  test_comparisons();
  test_all_at_once();
  test_other_waits();
  shmem_free(data_on_heap);
  shmem_free(signal_on_heap);
  shmem_finalize();
  return 0;
}
