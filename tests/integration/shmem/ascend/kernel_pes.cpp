// SPDX-License-Identifier: Apache-2.0
// Kernels of Ascend SHMEM that do not move data: atomic operations, the kernels' forms of waits, profiled frames.
#include "check.h"

#include <cmath>

namespace {

constexpr int kCores = 4;
constexpr int kTimes = 50;

struct Work {
  void* word;   // symmetric
  void* words;  // symmetric, several
  int cores;
};

/// All cores of all PEs add 1 to a word of PE 0, which is exact in every type.
#define DEFINE_ADD(NAME, T)                                                                                       \
  void add_##NAME(shmemx_core_t* /*core*/, void* argument) {                                                      \
    const Work& work = *static_cast<Work*>(argument);                                                             \
    T* word = static_cast<T*>(work.word);                                                                         \
    if (aclshmem_my_pe() == 0) *word = static_cast<T>(0);                                                         \
    aclshmem_barrier_all();                                                                                       \
    for (int i = 0; i < 4; ++i) aclshmem_##NAME##_atomic_add(word, static_cast<T>(1), 0);                         \
    for (int i = 0; i < 2; ++i) aclshmemx_mte_atomic_add(word, static_cast<T>(1), 0);                             \
    aclshmem_barrier_all();                                                                                       \
    CHECK(aclshmem_##NAME##_g(word, 0) == static_cast<T>(static_cast<float>(6 * work.cores * aclshmem_n_pes()))); \
    aclshmem_barrier_all();                                                                                       \
  }
ACLSHMEM_ATOMIC_ADD_TYPES(DEFINE_ADD)

#define DEFINE_SET(NAME, T)                                              \
  void set_##NAME(shmemx_core_t* core, void* argument) {                 \
    T* word = static_cast<T*>(static_cast<Work*>(argument)->word);       \
    aclshmem_barrier_all();                                              \
    if (shmemx_core_index(core) == 0) {                                  \
      aclshmem_##NAME##_atomic_set(word, T(5), right());                 \
      CHECK(aclshmem_##NAME##_atomic_swap(word, T(7), right()) == T(5)); \
      CHECK(aclshmemx_mte_atomic_swap(word, T(8), right()) == T(7));     \
      aclshmemx_mte_atomic_set(word, T(9), right());                     \
      CHECK(aclshmemx_mte_atomic_fetch(word, right()) == T(9));          \
    }                                                                    \
    aclshmem_barrier_all();                                              \
    CHECK(*word == T(9));                                                \
    aclshmem_barrier_all();                                              \
  }
ACLSHMEM_ATOMIC_SET_TYPES(DEFINE_SET)

#define DEFINE_ATOMICS(NAME, T)                                                                      \
  void atomics_##NAME(shmemx_core_t* core, void* argument) {                                         \
    const Work& work = *static_cast<Work*>(argument);                                                \
    T* word = static_cast<T*>(work.word);                                                            \
    const int pe = aclshmem_n_pes() - 1;                                                             \
    const T all_cores = static_cast<T>(work.cores * aclshmem_n_pes());                               \
    if (aclshmem_my_pe() == pe) *word = T(0);                                                        \
    aclshmem_barrier_all();                                                                          \
    T last = T(0);                                                                                   \
    for (int i = 0; i < kTimes; ++i) {                                                               \
      aclshmem_##NAME##_atomic_inc(word, pe);                                                        \
      CHECK(aclshmem_##NAME##_atomic_fetch_inc(word, pe) >= last);                                   \
      last = aclshmem_##NAME##_atomic_fetch_add(word, T(2), pe);                                     \
      aclshmemx_mte_atomic_inc(word, pe);                                                            \
      aclshmemx_mte_atomic_fetch_inc(word, pe);                                                      \
      aclshmemx_mte_atomic_fetch_add(word, T(1), pe);                                                \
    }                                                                                                \
    aclshmem_barrier_all();                                                                          \
    CHECK(aclshmem_##NAME##_atomic_fetch(word, pe) == static_cast<T>(T{7} * T{kTimes} * all_cores)); \
    aclshmem_barrier_all();                                                                          \
    if (shmemx_core_index(core) == 0) {                                                              \
      T* mine = static_cast<T*>(work.words);                                                         \
      const int to = right();                                                                        \
      aclshmem_##NAME##_atomic_set(mine, T(12), to);                                                 \
      CHECK(aclshmem_##NAME##_atomic_fetch_and(mine, T(6), to) == T(12));                            \
      CHECK(aclshmem_##NAME##_atomic_fetch_or(mine, T(3), to) == T(4));                              \
      CHECK(aclshmem_##NAME##_atomic_fetch_xor(mine, T(1), to) == T(7));                             \
      aclshmem_##NAME##_atomic_and(mine, T(2), to);                                                  \
      aclshmem_##NAME##_atomic_or(mine, T(9), to);                                                   \
      aclshmem_##NAME##_atomic_xor(mine, T(1), to);                                                  \
      CHECK(aclshmem_##NAME##_atomic_compare_swap(mine, T(9), T(1), to) == T(10));                   \
      CHECK(aclshmem_##NAME##_atomic_compare_swap(mine, T(10), T(1), to) == T(10));                  \
      CHECK(aclshmemx_mte_atomic_compare_swap(mine, T(1), T(2), to) == T(1));                        \
      CHECK(aclshmem_##NAME##_atomic_fetch(mine, to) == T(2));                                       \
    }                                                                                                \
    aclshmem_barrier_all();                                                                          \
  }
ACLSHMEM_ATOMIC_TYPES(DEFINE_ATOMICS)

/// The forms that return results, on core 0.
#define DEFINE_WAITS(NAME, T, TYPE)                                                                                  \
  void waits_##NAME(shmemx_core_t* core, void* argument) {                                                           \
    constexpr size_t kCount = 5;                                                                                     \
    T* words = static_cast<T*>(static_cast<Work*>(argument)->words);                                                 \
    const int status[kCount] = {0, 0, 1, 0, 0};                                                                      \
    const T values[kCount] = {1, 2, 3, 4, 5};                                                                        \
    size_t indices[kCount] = {};                                                                                     \
    const bool first = shmemx_core_index(core) == 0;                                                                 \
    if (first) memset(words, 0, kCount * sizeof(T));                                                                 \
    aclshmem_barrier_all();                                                                                          \
    if (first) {                                                                                                     \
      CHECK(aclshmem_##NAME##_test(words, ACLSHMEM_CMP_EQ, 0) == 1);                                                 \
      CHECK(aclshmem_##NAME##_test_all(words, kCount, nullptr, ACLSHMEM_CMP_EQ, 0) == 1);                            \
      CHECK(aclshmem_##NAME##_test_any(words, kCount, status, ACLSHMEM_CMP_NE, 0) == SIZE_MAX);                      \
      CHECK(aclshmem_##NAME##_test_some(words, kCount, indices, status, ACLSHMEM_CMP_NE, 0) == 0);                   \
    }                                                                                                                \
    aclshmem_sync_all();                                                                                             \
    if (first) {                                                                                                     \
      aclshmem_##NAME##_p(words + 3, 4, right());                                                                    \
      CHECK(aclshmem_##NAME##_wait_until_any(words, kCount, status, ACLSHMEM_CMP_NE, 0) == 3);                       \
      CHECK(aclshmem_##NAME##_wait_until_some(words, kCount, indices, status, ACLSHMEM_CMP_EQ, 4) == 1);             \
      aclshmem_##NAME##_wait(words + 3, 0);                                                                          \
    }                                                                                                                \
    aclshmem_sync(ACLSHMEM_TEAM_WORLD);                                                                              \
    if (first) {                                                                                                     \
      for (size_t i = 0; i < kCount; ++i) aclshmem_##NAME##_p(words + i, values[i], right());                        \
      aclshmem_##NAME##_wait_until(words + 4, ACLSHMEM_CMP_EQ, 5);                                                   \
      aclshmem_##NAME##_wait_until_all(words, kCount, nullptr, ACLSHMEM_CMP_GT, 0);                                  \
      aclshmem_##NAME##_wait_until_all_vector(words, kCount, status, ACLSHMEM_CMP_EQ, values);                       \
      CHECK(aclshmem_##NAME##_wait_until_any_vector(words, kCount, status, ACLSHMEM_CMP_EQ, values) < kCount);       \
      CHECK(aclshmem_##NAME##_wait_until_some_vector(words, kCount, indices, status, ACLSHMEM_CMP_EQ, values) == 4); \
      CHECK(aclshmem_##NAME##_test_all_vector(words, kCount, nullptr, ACLSHMEM_CMP_EQ, values) == 1);                \
      CHECK(aclshmem_##NAME##_test_any_vector(words, kCount, nullptr, ACLSHMEM_CMP_NE, values) == SIZE_MAX);         \
      CHECK(aclshmem_##NAME##_test_some_vector(words, kCount, indices, nullptr, ACLSHMEM_CMP_LE, values) == kCount); \
    }                                                                                                                \
    aclshmem_barrier_all();                                                                                          \
  }
ACLSHMEM_WAIT_TYPES(DEFINE_WAITS)

/// Numbers of 16 bits are rounded to nearest, ties to even.
void numbers() {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    aclshmem_half_t half;
    half.bits = static_cast<uint16_t>(bits);
    aclshmem_bfloat16_t brain;
    brain.bits = static_cast<uint16_t>(bits);
    CHECK(std::isnan(static_cast<float>(half)) || aclshmem_half_t(static_cast<float>(half)).bits == bits);
    CHECK(std::isnan(static_cast<float>(brain)) || aclshmem_bfloat16_t(static_cast<float>(brain)).bits == bits);
  }
  CHECK(std::isnan(static_cast<float>(aclshmem_half_t(NAN))) &&
        std::isnan(static_cast<float>(aclshmem_bfloat16_t(NAN))));
  CHECK(aclshmem_half_t(65504.0F).bits == 0x7bff && aclshmem_half_t(65519.0F).bits == 0x7bff);
  CHECK(aclshmem_half_t(65520.0F).bits == 0x7c00 && aclshmem_half_t(-1e9F).bits == 0xfc00);
  CHECK(aclshmem_half_t(2049.0F) == 2048.0F && aclshmem_half_t(2051.0F) == 2052.0F);
  CHECK(aclshmem_half_t(std::ldexp(1.0F, -25)).bits == 0 && aclshmem_half_t(std::ldexp(3.0F, -25)).bits == 2);
  CHECK(aclshmem_bfloat16_t(257.0F) == 256.0F && aclshmem_bfloat16_t(259.0F) == 260.0F);
}

void frames_kernel(shmemx_core_t* core, void* /*argument*/) {
  for (int i = 0; i <= shmemx_core_index(core); ++i) {
    SHMEMI_PROF_START(7);
    timespec nap{0, 1000000};
    nanosleep(&nap, nullptr);
    SHMEMI_PROF_END(7);
  }
  SHMEMI_PROF_START(ACLSHMEM_CYCLE_PROF_FRAME_CNT);
  SHMEMI_PROF_END(ACLSHMEM_CYCLE_PROF_FRAME_CNT);
  SHMEMI_PROF_START(-1);
  SHMEMI_PROF_END(-1);
}

/// The last PE measures.
void frames() {
  SHMEMI_PROF_START(3);  // not on the host
  SHMEMI_PROF_END(3);
  CHECK(shmemx_launch(kCores, frames_kernel, nullptr) == 0);
  aclshmem_prof_pe_t* measured = nullptr;
  aclshmemx_get_prof(&measured, false);
  CHECK((measured != nullptr) == (aclshmem_my_pe() == aclshmem_n_pes() - 1));
  if (measured != nullptr) {
    CHECK(measured->pe_id == aclshmem_my_pe());
    for (int core = 0; core < kCores; ++core) {
      CHECK(measured->block_prof[core].ccount[7] == core + 1);
      CHECK(measured->block_prof[core].cycles[7] >= (core + 1) * int64_t{1000000});
      CHECK(measured->block_prof[core].ccount[3] == 0 && measured->block_prof[core].cycles[3] == 0);
    }
    CHECK(measured->block_prof[kCores].ccount[7] == 0);
  }
  aclshmemx_show_prof();
}

}  // namespace

PE_PART(kernel) {
  shmem_init();
  Work work{aclshmem_calloc(1, 8), aclshmem_calloc(8, 8), 0};
  numbers();
  for (const int cores : {kCores}) {
    work.cores = cores;
#define RUN_ADD(NAME, T) CHECK(shmemx_launch(cores, add_##NAME, &work) == 0);
    ACLSHMEM_ATOMIC_ADD_TYPES(RUN_ADD)
#define RUN_SET(NAME, T) CHECK(shmemx_launch(cores, set_##NAME, &work) == 0);
    ACLSHMEM_ATOMIC_SET_TYPES(RUN_SET)
#define RUN_ATOMICS(NAME, T) CHECK(shmemx_launch(cores, atomics_##NAME, &work) == 0);
    ACLSHMEM_ATOMIC_TYPES(RUN_ATOMICS)
#define RUN_WAITS(NAME, T, TYPE) CHECK(shmemx_launch(cores, waits_##NAME, &work) == 0);
    ACLSHMEM_WAIT_TYPES(RUN_WAITS)
  }
  frames();
  CHECK(aclshmem_finalize() == ACLSHMEM_SUCCESS);
  return 0;
}
