/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 3 and 9.7: atomics of all PEs on one word exclude each other, and none is torn. */
#include "conformance_check.h"

enum { kRounds = 100, kMostPes = 62 };

/* Each fetched value is unique, and together they are all values. */
#define TEST_FETCH(NAME, TYPE)                                                                                    \
  static void test_fetch_##NAME(void) {                                                                           \
    static TYPE counter;                                                                                          \
    static int seen[kRounds * kMostPes * 2];                                                                      \
    for (int i = 0; i < kRounds; ++i) {                                                                           \
      const TYPE a = shmem_##NAME##_atomic_fetch_inc(&counter, 0);                                                \
      const TYPE b = shmem_##NAME##_atomic_fetch_add(&counter, 1, 0);                                             \
      EXPECT((size_t)a < sizeof seen / sizeof *seen && a < b, "a PE's values grow by the operations of all PEs"); \
      shmem_int_atomic_inc(&seen[a], 0);                                                                          \
      shmem_int_atomic_inc(&seen[b], 0);                                                                          \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
    for (int i = 0; me == 0 && i < 2 * kRounds * pes; ++i) {                                                      \
      EXPECT(seen[i] == 1, "atomic_fetch_inc and _fetch_add give each value once: " #NAME);                       \
    }                                                                                                             \
    shmem_barrier_all();                                                                                          \
  }
TEST_FETCH(int, int)
TEST_FETCH(long, long)
TEST_FETCH(ulonglong, unsigned long long)
TEST_FETCH(uint32, uint32_t)
TEST_FETCH(int64, int64_t)
TEST_FETCH(size, size_t)

/* A loop of fetch and compare_swap loses nothing; a failed one changes nothing and tells the value. */
#define TEST_COMPARE(NAME, TYPE)                                                                                 \
  static void test_compare_##NAME(void) {                                                                        \
    static TYPE sum;                                                                                             \
    for (int i = 0; i < kRounds; ++i) {                                                                          \
      TYPE known = shmem_##NAME##_atomic_fetch(&sum, 0);                                                         \
      TYPE found = shmem_##NAME##_atomic_compare_swap(&sum, known, (TYPE)(known + 3), 0);                        \
      while (found != known) {                                                                                   \
        known = found;                                                                                           \
        found = shmem_##NAME##_atomic_compare_swap(&sum, known, (TYPE)(known + 3), 0);                           \
      }                                                                                                          \
    }                                                                                                            \
    shmem_barrier_all();                                                                                         \
    EXPECT(shmem_##NAME##_g(&sum, 0) == (TYPE)(3 * kRounds * pes), "each successful swap counts: " #NAME);       \
    EXPECT(shmem_##NAME##_atomic_compare_swap(&sum, (TYPE)1, (TYPE)2, 0) == (TYPE)(3 * kRounds * pes),           \
           "a swap that fails returns the value that is there: " #NAME);                                         \
    EXPECT(shmem_##NAME##_g(&sum, 0) == (TYPE)(3 * kRounds * pes), "a swap that fails changes nothing: " #NAME); \
    shmem_barrier_all();                                                                                         \
  }
TEST_COMPARE(int, int)
TEST_COMPARE(ulong, unsigned long)
TEST_COMPARE(uint64, uint64_t)

/* Tokens that are swapped in come out once: nothing is lost and nothing doubled. */
#define TEST_SWAP(NAME, TYPE)                                                                                       \
  static void test_swap_##NAME(void) {                                                                              \
    static TYPE place;                                                                                              \
    static long total;                                                                                              \
    long put = 0, got = 0;                                                                                          \
    for (int i = 1; i <= kRounds; ++i) {                                                                            \
      put += me * kRounds + i;                                                                                      \
      got += (long)shmem_##NAME##_atomic_swap(&place, (TYPE)(me * kRounds + i), 0);                                 \
    }                                                                                                               \
    shmem_long_atomic_add(&total, put - got, 0);                                                                    \
    shmem_barrier_all();                                                                                            \
    EXPECT(shmem_long_g(&total, 0) == (long)shmem_##NAME##_g(&place, 0), "each value is swapped out once: " #NAME); \
    shmem_barrier_all();                                                                                            \
  }
TEST_SWAP(int, int)
TEST_SWAP(longlong, long long)
TEST_SWAP(double, double)
TEST_SWAP(float, float)

/* Each PE has a bit of its own in a word that all change at once. */
#define TEST_BITS(NAME, TYPE)                                                                                          \
  static void test_bits_##NAME(void) {                                                                                 \
    static TYPE word;                                                                                                  \
    const TYPE bit = (TYPE)((TYPE)1 << (me % 30)); /* with more than 30 PEs some are alone with no bit */              \
    for (int i = 0; pes <= 30 && i < kRounds; ++i) {                                                                   \
      EXPECT((shmem_##NAME##_atomic_fetch_or(&word, bit, 0) & bit) == 0, "fetch_or tells that the bit was 0: " #NAME); \
      EXPECT((shmem_##NAME##_atomic_fetch_and(&word, (TYPE)~bit, 0) & bit) == bit, "fetch_and tells 1: " #NAME);       \
      EXPECT((shmem_##NAME##_atomic_fetch_xor(&word, bit, 0) & bit) == 0, "fetch_xor tells 0: " #NAME);                \
      shmem_##NAME##_atomic_xor(&word, bit, 0);                                                                        \
      shmem_quiet();                                                                                                   \
      shmem_##NAME##_atomic_or(&word, bit, 0);                                                                         \
      shmem_quiet();                                                                                                   \
      shmem_##NAME##_atomic_and(&word, (TYPE)~bit, 0);                                                                 \
      shmem_quiet();                                                                                                   \
    }                                                                                                                  \
    shmem_barrier_all();                                                                                               \
    EXPECT(shmem_##NAME##_g(&word, 0) == 0, "no PE's bit is lost or set again: " #NAME);                               \
    shmem_barrier_all();                                                                                               \
  }
TEST_BITS(uint, unsigned int)
TEST_BITS(ulong, unsigned long)
TEST_BITS(int32, int32_t)
TEST_BITS(uint64, uint64_t)

/* A word that PEs set to values whose halves agree is never seen with halves of two values. */
static void test_whole_words(void) {
  static uint64_t word;
  static double real;
  const uint64_t mine = (uint64_t)(me + 1) * 0x0000000100000001U;
  for (int i = 0; i < 10 * kRounds; ++i) {
    shmem_uint64_atomic_set(&word, i % 2 == 0 ? mine : ~mine, 0);
    const uint64_t seen = shmem_uint64_atomic_fetch(&word, 0);
    EXPECT(seen >> 32 == (seen & 0xffffffffU), "a 64-bit value is set and fetched as a whole");
    shmem_double_atomic_set(&real, i % 2 == 0 ? 1e300 : -1e-300, 0);
    const double value = shmem_double_atomic_fetch(&real, 0);
    EXPECT(value == 1e300 || value == -1e-300 || value == 0, "a double is set and fetched as a whole");
  }
  shmem_barrier_all();
}

/* Nonblocking atomics are exclusive too, and fetch into any memory of this PE. */
static void test_nonblocking(void) {
  static long counter;
  long fetched[50], sum = 0;
  for (int i = 0; i < 50; ++i) {
    shmem_long_atomic_fetch_inc_nbi(&fetched[i], &counter, 0);
  }
  shmem_quiet();
  static long total;
  for (int i = 0; i < 50; ++i) {
    sum += fetched[i];
  }
  shmem_long_atomic_add(&total, sum, 0);
  shmem_barrier_all();
  const long n = 50L * pes;
  EXPECT(shmem_long_g(&counter, 0) == n, "no nonblocking increment is lost");
  EXPECT(shmem_long_g(&total, 0) == n * (n - 1) / 2, "nonblocking increments fetch each value once");
}

/* Values at the ends of the range. */
static void test_ends_of_range(void) {
  static unsigned int small;
  static long large;
  shmem_uint_atomic_set(&small, ~0U, right());
  shmem_quiet();
  EXPECT(shmem_uint_atomic_fetch_inc(&small, right()) == ~0U, "the largest value is fetched");
  EXPECT(shmem_uint_atomic_fetch(&small, right()) == 0, "unsigned values wrap");
  EXPECT(shmem_long_atomic_fetch_add(&large, -5, right()) == 0, "negative values can be added");
  EXPECT(shmem_long_atomic_swap(&large, INT64_MIN, right()) == -5, "negative values are fetched");
  EXPECT(shmem_long_atomic_compare_swap(&large, INT64_MIN, INT64_MAX, right()) == INT64_MIN, "and compared");
  shmem_barrier_all();
  EXPECT(large == INT64_MAX, "the largest value is stored");
}

PE_PART(conformance_atomics) {
  start();
  EXPECT(pes <= kMostPes, "this program is for up to 62 PEs");
  test_fetch_int();
  test_fetch_long();
  test_fetch_ulonglong();
  test_fetch_uint32();
  test_fetch_int64();
  test_fetch_size();
  test_compare_int();
  test_compare_ulong();
  test_compare_uint64();
  test_swap_int();
  test_swap_longlong();
  test_swap_double();
  test_swap_float();
  test_bits_uint();
  test_bits_ulong();
  test_bits_int32();
  test_bits_uint64();
  test_whole_words();
  test_nonblocking();
  test_ends_of_range();
  shmem_finalize();
  return 0;
}
