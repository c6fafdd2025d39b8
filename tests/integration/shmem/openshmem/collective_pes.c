/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.10: every collective for every type, on teams and active sets, of sizes 0, odd and large. */
#include "check.h"

static shmem_team_t team; /* all PEs, or every other one */
static int me, size, start, stride;

static const size_t kCounts[] = {0, 1, 3, 8};
enum { kMost = 8 };

#define EACH_COUNT for (const size_t* at = kCounts; at != kCounts + sizeof kCounts / sizeof *kCounts; ++at)

/* The contents of elements that were not written. */
#define NOTHING 77

#define FILL(TYPE, length)                          \
  do {                                              \
    shmem_team_sync(team);                          \
    for (size_t i = 0; i < (size_t)(length); ++i) { \
      source[i] = (TYPE)pattern(me, i);             \
      dest[i] = (TYPE)NOTHING;                      \
    }                                               \
  } while (0)
#define CHECK_ALL(TYPE, length, expected)                                             \
  do {                                                                                \
    for (size_t i = 0; i < (size_t)(length); ++i) CHECK(dest[i] == (TYPE)(expected)); \
    CHECK(dest[length] == (TYPE)NOTHING);                                             \
  } while (0)

#define TEST_MOVE(NAME, TYPE)                                                                 \
  static void test_move_##NAME(void* dest_memory, void* source_memory) {                      \
    TYPE* dest = (TYPE*)dest_memory;                                                          \
    TYPE* source = (TYPE*)source_memory;                                                      \
    EACH_COUNT {                                                                              \
      const size_t n = *at;                                                                   \
      const size_t most = n * (size_t)size + 1;                                               \
      const int root = (int)n % size;                                                         \
      FILL(TYPE, most);                                                                       \
      CHECK(shmem_##NAME##_broadcast(team, dest, source, n, root) == 0);                      \
      CHECK_ALL(TYPE, n, pattern(root, i));                                                   \
      FILL(TYPE, most);                                                                       \
      CHECK(shmem_##NAME##_fcollect(team, dest, source, n) == 0);                             \
      CHECK_ALL(TYPE, n*(size_t)size, pattern((int)(i / n), i % n));                          \
      FILL(TYPE, most);                                                                       \
      CHECK(shmem_##NAME##_alltoall(team, dest, source, n) == 0);                             \
      CHECK_ALL(TYPE, n*(size_t)size, pattern((int)(i / n), (size_t)me* n + i % n));          \
      /* PE i gives i + n elements. */                                                        \
      const size_t all = n * (size_t)size + (size_t)(size * (size - 1) / 2);                  \
      FILL(TYPE, all + 1);                                                                    \
      CHECK(shmem_##NAME##_collect(team, dest, source, n + (size_t)me) == 0);                 \
      size_t k = 0;                                                                           \
      for (int pe = 0; pe < size; ++pe) {                                                     \
        for (size_t i = 0; i < n + (size_t)pe; ++i) CHECK(dest[k++] == (TYPE)pattern(pe, i)); \
      }                                                                                       \
      CHECK(dest[k] == (TYPE)NOTHING);                                                        \
      /* Element e of a block is at 2 * e in the source and at 3 * e in dest. */              \
      FILL(TYPE, 3 * n * (size_t)size + 1);                                                   \
      CHECK(shmem_##NAME##_alltoalls(team, dest, source, 3, 2, n) == 0);                      \
      for (size_t i = 0; i < 3 * n * (size_t)size; ++i) {                                     \
        const int pe = (int)(i / (3 * n));                                                    \
        const size_t e = i / 3 % n;                                                           \
        const int came = i % 3 == 0 ? pattern(pe, ((size_t)me * n + e) * 2) : NOTHING;        \
        CHECK(dest[i] == (TYPE)came);                                                         \
      }                                                                                       \
    }                                                                                         \
    shmem_team_sync(team);                                                                    \
  }
SHMEM_RMA_TYPES(TEST_MOVE)

/* The reduction, element by element in the order of PEs. */
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))

/* Factors 1 to 3, whose product stays small for 7 PEs. */
static short factor(int pe, size_t i) {
  return (short)(1 + (pe + (int)i) % (i % 2 == 0 ? 2 : 3));
}

#define CHECK_COMBINED(TYPE, routine, OP, first, last, value, n) \
  do {                                                           \
    for (int in_place = 0; in_place < 2; ++in_place) {           \
      TYPE* to = in_place ? source : dest;                       \
      shmem_team_sync(team);                                     \
      for (size_t i = 0; i < (n) + 1; ++i) {                     \
        source[i] = (TYPE)value(me, i);                          \
        dest[i] = (TYPE)NOTHING;                                 \
      }                                                          \
      CHECK(routine(team, to, source, n) == 0);                  \
      for (size_t i = 0; i < (n); ++i) {                         \
        TYPE all = (TYPE)0;                                      \
        for (int pe = first; pe <= (last); ++pe) {               \
          const TYPE next = (TYPE)value(pe, i);                  \
          if (pe == (first)) {                                   \
            all = next;                                          \
          } else {                                               \
            all = (TYPE)OP(all, next);                           \
          }                                                      \
        }                                                        \
        CHECK(to[i] == all);                                     \
      }                                                          \
      if (!in_place) CHECK(dest[n] == (TYPE)NOTHING);            \
    }                                                            \
  } while (0)

#define TEST_BITS(NAME, TYPE)                                                          \
  static void test_bits_##NAME(void* dest_memory, void* source_memory) {               \
    TYPE* dest = (TYPE*)dest_memory;                                                   \
    TYPE* source = (TYPE*)source_memory;                                               \
    EACH_COUNT {                                                                       \
      CHECK_COMBINED(TYPE, shmem_##NAME##_and_reduce, AND, 0, size - 1, pattern, *at); \
      CHECK_COMBINED(TYPE, shmem_##NAME##_or_reduce, OR, 0, size - 1, pattern, *at);   \
      CHECK_COMBINED(TYPE, shmem_##NAME##_xor_reduce, XOR, 0, size - 1, pattern, *at); \
    }                                                                                  \
    shmem_team_sync(team);                                                             \
  }
SHMEM_BITWISE_REDUCE_TYPES(TEST_BITS)

#define TEST_ORDERED(NAME, TYPE)                                                       \
  static void test_ordered_##NAME(void* dest_memory, void* source_memory) {            \
    TYPE* dest = (TYPE*)dest_memory;                                                   \
    TYPE* source = (TYPE*)source_memory;                                               \
    EACH_COUNT {                                                                       \
      CHECK_COMBINED(TYPE, shmem_##NAME##_max_reduce, MAX, 0, size - 1, pattern, *at); \
      CHECK_COMBINED(TYPE, shmem_##NAME##_min_reduce, MIN, 0, size - 1, pattern, *at); \
    }                                                                                  \
    shmem_team_sync(team);                                                             \
  }
SHMEM_RMA_TYPES(TEST_ORDERED)

#define TEST_ARITHMETIC(NAME, TYPE)                                                     \
  static void test_arithmetic_##NAME(void* dest_memory, void* source_memory) {          \
    TYPE* dest = (TYPE*)dest_memory;                                                    \
    TYPE* source = (TYPE*)source_memory;                                                \
    EACH_COUNT {                                                                        \
      CHECK_COMBINED(TYPE, shmem_##NAME##_sum_reduce, SUM, 0, size - 1, factor, *at);   \
      CHECK_COMBINED(TYPE, shmem_##NAME##_prod_reduce, PROD, 0, size - 1, factor, *at); \
      CHECK_COMBINED(TYPE, shmem_##NAME##_sum_inscan, SUM, 0, me, factor, *at);         \
      CHECK_COMBINED(TYPE, shmem_##NAME##_sum_exscan, SUM, 0, me - 1, factor, *at);     \
    }                                                                                   \
    shmem_team_sync(team);                                                              \
  }
SHMEM_ARITHMETIC_REDUCE_TYPES(TEST_ARITHMETIC)

/* Active sets: pSync is zero before and after. */
static long psync[SHMEM_SYNC_SIZE];

static void check_psync(void) {
  for (int i = 0; i < SHMEM_SYNC_SIZE; ++i) {
    CHECK(psync[i] == SHMEM_SYNC_VALUE);
  }
}

#define SET start, (stride == 2 ? 1 : 0), size
#define CHECK_TO_ALL(NAME, TYPE, VERB, OP, value)                          \
  do {                                                                     \
    shmem_team_sync(team);                                                 \
    for (size_t i = 0; i < kMost; ++i) source[i] = (TYPE)value(me, i);     \
    shmem_##NAME##_##VERB##_to_all(dest, source, kMost, SET, NULL, psync); \
    for (size_t i = 0; i < kMost; ++i) {                                   \
      TYPE all = (TYPE)value(0, i);                                        \
      for (int pe = 1; pe < size; ++pe) {                                  \
        const TYPE next = (TYPE)value(pe, i);                              \
        all = (TYPE)OP(all, next);                                         \
      }                                                                    \
      CHECK(dest[i] == all);                                               \
    }                                                                      \
    check_psync();                                                         \
  } while (0)
#define TEST_SET_BITS(NAME, TYPE)                                            \
  static void test_set_bits_##NAME(void* dest_memory, void* source_memory) { \
    TYPE* dest = (TYPE*)dest_memory;                                         \
    TYPE* source = (TYPE*)source_memory;                                     \
    CHECK_TO_ALL(NAME, TYPE, and, AND, pattern);                             \
    CHECK_TO_ALL(NAME, TYPE, or, OR, pattern);                               \
    CHECK_TO_ALL(NAME, TYPE, xor, XOR, pattern);                             \
    shmem_team_sync(team);                                                   \
  }
SHMEM_OLD_BITWISE_REDUCE_TYPES(TEST_SET_BITS)
#define TEST_SET_ORDERED(NAME, TYPE)                                            \
  static void test_set_ordered_##NAME(void* dest_memory, void* source_memory) { \
    TYPE* dest = (TYPE*)dest_memory;                                            \
    TYPE* source = (TYPE*)source_memory;                                        \
    CHECK_TO_ALL(NAME, TYPE, max, MAX, pattern);                                \
    CHECK_TO_ALL(NAME, TYPE, min, MIN, pattern);                                \
    shmem_team_sync(team);                                                      \
  }
SHMEM_OLD_ORDERED_REDUCE_TYPES(TEST_SET_ORDERED)
#define TEST_SET_ARITHMETIC(NAME, TYPE)                                            \
  static void test_set_arithmetic_##NAME(void* dest_memory, void* source_memory) { \
    TYPE* dest = (TYPE*)dest_memory;                                               \
    TYPE* source = (TYPE*)source_memory;                                           \
    CHECK_TO_ALL(NAME, TYPE, sum, SUM, factor);                                    \
    CHECK_TO_ALL(NAME, TYPE, prod, PROD, factor);                                  \
    shmem_team_sync(team);                                                         \
  }
SHMEM_OLD_ARITHMETIC_REDUCE_TYPES(TEST_SET_ARITHMETIC)

#define TEST_SET_MOVE(BITS)                                                                 \
  static void test_set_move_##BITS(void* dest_memory, void* source_memory) {                \
    typedef uint##BITS##_t TYPE;                                                            \
    TYPE* dest = (TYPE*)dest_memory;                                                        \
    TYPE* source = (TYPE*)source_memory;                                                    \
    const size_t n = 3;                                                                     \
    const int root = size - 1;                                                              \
    FILL(TYPE, kMost);                                                                      \
    shmem_broadcast##BITS(dest, source, n, root, SET, psync);                               \
    CHECK_ALL(TYPE, n, me == root ? NOTHING : pattern(root, i));                            \
    check_psync();                                                                          \
    FILL(TYPE, 3 * kMost);                                                                  \
    shmem_fcollect##BITS(dest, source, n, SET, psync);                                      \
    CHECK_ALL(TYPE, n*(size_t)size, pattern((int)(i / n), i % n));                          \
    check_psync();                                                                          \
    FILL(TYPE, 5 * kMost);                                                                  \
    shmem_collect##BITS(dest, source, (size_t)me + 1, SET, psync);                          \
    size_t k = 0;                                                                           \
    for (int pe = 0; pe < size; ++pe) {                                                     \
      for (size_t i = 0; i < (size_t)pe + 1; ++i) CHECK(dest[k++] == (TYPE)pattern(pe, i)); \
    }                                                                                       \
    CHECK(dest[k] == NOTHING);                                                              \
    check_psync();                                                                          \
    FILL(TYPE, 3 * kMost);                                                                  \
    shmem_alltoall##BITS(dest, source, n, SET, psync);                                      \
    CHECK_ALL(TYPE, n*(size_t)size, pattern((int)(i / n), (size_t)me* n + i % n));          \
    FILL(TYPE, 3 * kMost);                                                                  \
    shmem_alltoalls##BITS(dest, source, 1, 1, n, SET, psync);                               \
    CHECK_ALL(TYPE, n*(size_t)size, pattern((int)(i / n), (size_t)me* n + i % n));          \
    check_psync();                                                                          \
    shmem_team_sync(team);                                                                  \
  }
TEST_SET_MOVE(32)
TEST_SET_MOVE(64)

/* More elements than one step combines, and not a multiple of the number of PEs. */
static void test_large(void) {
  const size_t n = 100003;
  long* source = (long*)shmem_malloc(n * sizeof(long));
  long* dest = (long*)shmem_malloc(n * sizeof(long));
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (size_t i = 0; i < n; ++i) {
      source[i] = (long)i * (shmem_my_pe() + 1);
    }
    long* to = in_place ? source : dest;
    shmem_barrier_all();
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, to, source, n) == 0);
    const long pes = shmem_n_pes();
    for (size_t i = 0; i < n; ++i) {
      CHECK(to[i] == (long)i * (pes * (pes + 1) / 2));
    }
    for (size_t i = 0; i < n; ++i) {
      source[i] = (long)i * (shmem_my_pe() + 1);
    }
    shmem_barrier_all();
    CHECK(shmem_sum_inscan(SHMEM_TEAM_WORLD, to, source, n) == 0);
    const long before = shmem_my_pe() + 1;
    for (size_t i = 0; i < n; ++i) {
      CHECK(to[i] == (long)i * (before * (before + 1) / 2));
    }
    shmem_barrier_all();
  }
  shmem_free(dest);
  shmem_free(source);
}

static void test_large_moves(void) {
  enum { kWords = 30011 };
  static long source[kWords], dest[kWords + 1];
  dest[kWords] = NOTHING;
  team = SHMEM_TEAM_WORLD;
  me = shmem_my_pe();
  size = shmem_n_pes();
  for (int root = 0; root < size; ++root) {
    FILL(long, kWords);
    CHECK(shmem_long_broadcast(team, dest, source, kWords, root) == 0);
    CHECK_ALL(long, kWords, pattern(root, i));
  }
  const size_t block = (size_t)(kWords / size);
  FILL(long, kWords);
  CHECK(shmem_long_fcollect(team, dest, source, block) == 0);
  for (size_t i = 0; i < block * (size_t)size; ++i) {
    CHECK(dest[i] == pattern((int)(i / block), i % block));
  }
  FILL(long, kWords);
  CHECK(shmem_long_alltoall(team, dest, source, block) == 0);
  for (size_t i = 0; i < block * (size_t)size; ++i) {
    CHECK(dest[i] == pattern((int)(i / block), (size_t)me * block + i % block));
  }
  shmem_barrier_all();
}

/* A root may run ahead of the others, which check each value; now and then all PEs synchronise. */
static void test_run_ahead(void) {
  static long to, from;
  for (int i = 0; i < 400; ++i) {
    const int root = i < 200 ? 0 : i % shmem_n_pes();
    from = shmem_my_pe() == root ? i : -1;
    CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, &to, &from, 1, root) == 0);
    CHECK(to == i);
    if (i % 100 == 7) {
      shmem_barrier_all();
    }
    if (i % 100 == 50) {
      from = i + shmem_my_pe();
      CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &to, &from, 1) == 0);
      CHECK(to == (long)i * shmem_n_pes() + (long)shmem_n_pes() * (shmem_n_pes() - 1) / 2);
    }
  }
}

/* Every algorithm combines in the order of PEs; between nodes, in a fixed order: the same bits on all PEs and in every
 * run. */
static void test_rounding(void) {
  static double to[300], from[300];
  int one_node = 1;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    one_node = one_node && shmem_ptr(to, pe) != NULL;
  }
  static const size_t counts[] = {1, 12, 13, 300};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; ++c) {
    for (size_t i = 0; i < counts[c]; ++i) {
      from[i] = pattern(shmem_my_pe(), i) * (i % 2 == 0 ? 0.1 : 1e15);
    }
    shmem_barrier_all();
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, to, from, counts[c]) == 0);
    for (size_t i = 0; i < counts[c]; ++i) {
      volatile double sum = pattern(0, i) * (i % 2 == 0 ? 0.1 : 1e15);
      for (int pe = 1; pe < shmem_n_pes(); ++pe) {
        sum = sum + pattern(pe, i) * (i % 2 == 0 ? 0.1 : 1e15);
      }
      const double difference = to[i] < sum ? sum - to[i] : to[i] - sum;
      CHECK(one_node ? to[i] == sum : difference <= 1e-15 * (sum < 0 ? -sum : sum));
    }
    shmem_barrier_all();
    for (size_t i = 0; !one_node && i < counts[c]; ++i) {
      const double first = shmem_g(&to[i], 0);
      uint64_t bits[2];  // the same to the last bit
      memcpy(&bits[0], &to[i], sizeof first);
      memcpy(&bits[1], &first, sizeof first);
      CHECK(bits[0] == bits[1]);
    }
    shmem_barrier_all();
  }
}

static void test_bytes_and_generic_names(void) {
  static char bytes[2][64];
  static double numbers[8];
  const int pes = shmem_n_pes();
  for (int i = 0; i < 64; ++i) {
    bytes[0][i] = (char)pattern(shmem_my_pe(), (size_t)i);
  }
  shmem_barrier_all();
  CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 5, pes - 1) == 0);
  for (int i = 0; i < 5; ++i) {
    CHECK(bytes[1][i] == (char)pattern(pes - 1, (size_t)i));
  }
  CHECK(shmem_fcollectmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 2) == 0);
  for (int i = 0; i < 2 * pes; ++i) {
    CHECK(bytes[1][i] == (char)pattern(i / 2, (size_t)i % 2));
  }
  CHECK(shmem_collectmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 1) == 0);
  CHECK(shmem_alltoallmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 1) == 0);
  for (int i = 0; i < pes; ++i) {
    CHECK(bytes[1][i] == (char)pattern(i, (size_t)shmem_my_pe()));
  }
  CHECK(shmem_alltoallsmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 1, 1, 1) == 0);
  CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, numbers, numbers, 4, 0) == 0);
  CHECK(shmem_collect(SHMEM_TEAM_WORLD, numbers + 1, numbers, 0) == 0);
  CHECK(shmem_max_reduce(SHMEM_TEAM_WORLD, numbers, numbers, 4) == 0);
  CHECK(shmem_prod_reduce(SHMEM_TEAM_WORLD, numbers, numbers, 4) == 0);
  CHECK(shmem_sum_exscan(SHMEM_TEAM_WORLD, numbers, numbers, 4) == 0);
  CHECK(shmem_broadcastmem(SHMEM_TEAM_INVALID, bytes[1], bytes[0], 5, 0) != 0);
  CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 5, pes) != 0);
  CHECK(shmem_broadcastmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 5, -1) != 0);
  CHECK(shmem_alltoallsmem(SHMEM_TEAM_WORLD, bytes[1], bytes[0], 0, 1, 1) != 0);
  shmem_barrier_all();
}

/* As on_heap_and_globals, but not all PEs are in the team. */
static char* heap;
static void run(void (*test)(void* dest, void* source)) {
  if (team != SHMEM_TEAM_INVALID) {
    test(heap, heap + kBytes);
    test(global_memory[0], global_memory[1]);
  }
}

static void run_all(void) {
  me = shmem_team_my_pe(team);
  size = shmem_team_n_pes(team);
#define RUN(NAME, TYPE) run(test_move_##NAME);
  SHMEM_RMA_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_bits_##NAME);
  SHMEM_BITWISE_REDUCE_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_ordered_##NAME);
  SHMEM_RMA_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_arithmetic_##NAME);
  SHMEM_ARITHMETIC_REDUCE_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_set_bits_##NAME);
  SHMEM_OLD_BITWISE_REDUCE_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_set_ordered_##NAME);
  SHMEM_OLD_ORDERED_REDUCE_TYPES(RUN)
#undef RUN
#define RUN(NAME, TYPE) run(test_set_arithmetic_##NAME);
  SHMEM_OLD_ARITHMETIC_REDUCE_TYPES(RUN)
#undef RUN
  run(test_set_move_32);
  run(test_set_move_64);
}

/* One type of each kind and size with separate code, for tests that run this program with many settings. */
static void run_few(void) {
  me = shmem_team_my_pe(team);
  size = shmem_team_n_pes(team);
  run(test_move_char);
  run(test_move_long);
  run(test_move_longdouble);
  run(test_bits_uint);
  run(test_ordered_double);
  run(test_arithmetic_short);
  run(test_arithmetic_complexd);
  run(test_set_move_64);
  run(test_set_arithmetic_double);
}

PE_PART(collective) {
  const int few = argc > 1 && strcmp(argv[1], "few") == 0;
  shmem_init();
  heap = (char*)shmem_calloc(2, kBytes);
  team = SHMEM_TEAM_WORLD;
  start = 0;
  stride = 1;
  few ? run_few() : run_all();
  shmem_barrier_all();
  /* Every other PE, from PE 0. */
  stride = 2;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (shmem_n_pes() + 1) / 2, NULL, 0, &team) == 0);
  few ? run_few() : run_all();
  shmem_barrier_all();
  test_large();
  test_large_moves();
  test_run_ahead();
  test_rounding();
  test_bytes_and_generic_names();
  shmem_free(heap);
  shmem_finalize();
  return 0;
}
