/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSHMEM's generic names in C++: overloads for each type, with and without a context. Included by shmem.h.
 */
#ifndef SHMEM_SHMEM_CXX_H
#define SHMEM_SHMEM_CXX_H

#ifndef __cplusplus
#error "shmem_cxx.h is for C++; shmem_generic.h has the same for C11"
#endif

#include "shmem_atomic.h"
#include "shmem_collective.h"
#include "shmem_rma.h"
#include "shmem_wait.h"

/* `shmem_NAME(parameters)` and `shmem_NAME(ctx, parameters)`. */
#define SHMEM_OVERLOAD(result, type_name, name, parameters, arguments) \
  inline result shmem_##name parameters noexcept {                     \
    return shmem_##type_name##_##name arguments;                       \
  }
#define SHMEM_OVERLOAD_WITH_CTX(result, type_name, name, parameters, arguments) \
  SHMEM_OVERLOAD(result, type_name, name, parameters, arguments)                \
  inline result shmem_##name(shmem_ctx_t ctx, SHMEM_LIST parameters) noexcept { \
    return shmem_ctx_##type_name##_##name(ctx, SHMEM_LIST arguments);           \
  }

#define SHMEM_COPY(NAME, TYPE, name)                                                                  \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, name, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                          (dest, source, nelems, pe))
#define SHMEM_STRIDED(NAME, TYPE, name)                                                                           \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, name,                                                                       \
                          (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe), \
                          (dest, source, dst, sst, nelems, pe))
#define SHMEM_BLOCKS(NAME, TYPE, name)                                                                       \
  SHMEM_OVERLOAD_WITH_CTX(                                                                                   \
      void, NAME, name,                                                                                      \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe), \
      (dest, source, dst, sst, bsize, nblocks, pe))
#define SHMEM_SIGNALLING(NAME, TYPE, name)                                                                       \
  SHMEM_OVERLOAD_WITH_CTX(                                                                                       \
      void, NAME, name,                                                                                          \
      (TYPE * dest, const TYPE* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe), \
      (dest, source, nelems, sig_addr, signal, sig_op, pe))
#define SHMEM_OVERLOAD_RMA(NAME, TYPE)                                                         \
  SHMEM_COPY(NAME, TYPE, put)                                                                  \
  SHMEM_COPY(NAME, TYPE, get)                                                                  \
  SHMEM_COPY(NAME, TYPE, put_nbi)                                                              \
  SHMEM_COPY(NAME, TYPE, get_nbi)                                                              \
  SHMEM_STRIDED(NAME, TYPE, iput)                                                              \
  SHMEM_STRIDED(NAME, TYPE, iget)                                                              \
  SHMEM_BLOCKS(NAME, TYPE, ibput)                                                              \
  SHMEM_BLOCKS(NAME, TYPE, ibget)                                                              \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, p, (TYPE * dest, TYPE value, int pe), (dest, value, pe)) \
  SHMEM_OVERLOAD_WITH_CTX(TYPE, NAME, g, (const TYPE* source, int pe), (source, pe))           \
  SHMEM_SIGNALLING(NAME, TYPE, put_signal)                                                     \
  SHMEM_SIGNALLING(NAME, TYPE, put_signal_nbi)
SHMEM_RMA_BASIC_TYPES(SHMEM_OVERLOAD_RMA)

/* Signals alone: the forms without a context are C functions of these names already. */
inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) noexcept {
  shmem_ctx_signal_add(ctx, sig_addr, signal, pe);
}
inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) noexcept {
  shmem_ctx_signal_set(ctx, sig_addr, signal, pe);
}

/* TYPE shmem_NAME(dest, value, pe), the same without a result, and with its result in *fetch. */
#define SHMEM_CHANGE(NAME, TYPE, result, name) \
  SHMEM_OVERLOAD_WITH_CTX(result, NAME, name, (TYPE * dest, TYPE value, int pe), (dest, value, pe))
#define SHMEM_CHANGE_NBI(NAME, TYPE, name) \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, name, (TYPE * fetch, TYPE * dest, TYPE value, int pe), (fetch, dest, value, pe))
#define SHMEM_OVERLOAD_EXTENDED(NAME, TYPE)                                                         \
  SHMEM_OVERLOAD_WITH_CTX(TYPE, NAME, atomic_fetch, (const TYPE* source, int pe), (source, pe))     \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, atomic_fetch_nbi, (TYPE * fetch, const TYPE* source, int pe), \
                          (fetch, source, pe))                                                      \
  SHMEM_CHANGE(NAME, TYPE, void, atomic_set)                                                        \
  SHMEM_CHANGE(NAME, TYPE, TYPE, atomic_swap)                                                       \
  SHMEM_CHANGE_NBI(NAME, TYPE, atomic_swap_nbi)                                                     \
  SHMEM_OVERLOAD(TYPE, NAME, fetch, (const TYPE* source, int pe), (source, pe))                     \
  SHMEM_OVERLOAD(void, NAME, set, (TYPE * dest, TYPE value, int pe), (dest, value, pe))             \
  SHMEM_OVERLOAD(TYPE, NAME, swap, (TYPE * dest, TYPE value, int pe), (dest, value, pe))
SHMEM_EXTENDED_AMO_BASIC_TYPES(SHMEM_OVERLOAD_EXTENDED)

#define SHMEM_OVERLOAD_AMO(NAME, TYPE)                                                                                \
  SHMEM_OVERLOAD_WITH_CTX(TYPE, NAME, atomic_compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe),              \
                          (dest, cond, value, pe))                                                                    \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, atomic_compare_swap_nbi,                                                        \
                          (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe), (fetch, dest, cond, value, pe)) \
  SHMEM_OVERLOAD_WITH_CTX(TYPE, NAME, atomic_fetch_inc, (TYPE * dest, int pe), (dest, pe))                            \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, atomic_fetch_inc_nbi, (TYPE * fetch, TYPE * dest, int pe), (fetch, dest, pe))   \
  SHMEM_OVERLOAD_WITH_CTX(void, NAME, atomic_inc, (TYPE * dest, int pe), (dest, pe))                                  \
  SHMEM_CHANGE(NAME, TYPE, TYPE, atomic_fetch_add)                                                                    \
  SHMEM_CHANGE_NBI(NAME, TYPE, atomic_fetch_add_nbi)                                                                  \
  SHMEM_CHANGE(NAME, TYPE, void, atomic_add)                                                                          \
  SHMEM_OVERLOAD(TYPE, NAME, cswap, (TYPE * dest, TYPE cond, TYPE value, int pe), (dest, cond, value, pe))            \
  SHMEM_OVERLOAD(TYPE, NAME, finc, (TYPE * dest, int pe), (dest, pe))                                                 \
  SHMEM_OVERLOAD(void, NAME, inc, (TYPE * dest, int pe), (dest, pe))                                                  \
  SHMEM_OVERLOAD(TYPE, NAME, fadd, (TYPE * dest, TYPE value, int pe), (dest, value, pe))                              \
  SHMEM_OVERLOAD(void, NAME, add, (TYPE * dest, TYPE value, int pe), (dest, value, pe))
SHMEM_AMO_BASIC_TYPES(SHMEM_OVERLOAD_AMO)

#define SHMEM_OVERLOAD_BITWISE(NAME, TYPE)           \
  SHMEM_CHANGE(NAME, TYPE, TYPE, atomic_fetch_and)   \
  SHMEM_CHANGE_NBI(NAME, TYPE, atomic_fetch_and_nbi) \
  SHMEM_CHANGE(NAME, TYPE, void, atomic_and)         \
  SHMEM_CHANGE(NAME, TYPE, TYPE, atomic_fetch_or)    \
  SHMEM_CHANGE_NBI(NAME, TYPE, atomic_fetch_or_nbi)  \
  SHMEM_CHANGE(NAME, TYPE, void, atomic_or)          \
  SHMEM_CHANGE(NAME, TYPE, TYPE, atomic_fetch_xor)   \
  SHMEM_CHANGE_NBI(NAME, TYPE, atomic_fetch_xor_nbi) \
  SHMEM_CHANGE(NAME, TYPE, void, atomic_xor)
SHMEM_BITWISE_AMO_GENERIC_TYPES(SHMEM_OVERLOAD_BITWISE)

/* wait_until and wait for long are C functions of these names already. */
#define SHMEM_OVERLOAD_TEST(NAME, TYPE) \
  SHMEM_OVERLOAD(int, NAME, test, (TYPE * ivar, int cmp, TYPE cmp_value), (ivar, cmp, cmp_value))
#define SHMEM_OVERLOAD_WAIT_UNTIL(NAME, TYPE) \
  SHMEM_OVERLOAD(void, NAME, wait_until, (TYPE * ivar, int cmp, TYPE cmp_value), (ivar, cmp, cmp_value))
#define SHMEM_OVERLOAD_OLD_WAIT(NAME, TYPE) \
  SHMEM_OVERLOAD(void, NAME, wait, (TYPE * ivar, TYPE cmp_value), (ivar, cmp_value))
SHMEM_WAIT_GENERIC_TYPES(SHMEM_OVERLOAD_TEST)
SHMEM_OLD_WAIT_TYPES(SHMEM_OVERLOAD_WAIT_UNTIL)
SHMEM_OVERLOAD_WAIT_UNTIL(int, int)
SHMEM_OVERLOAD_WAIT_UNTIL(longlong, long long)
SHMEM_OVERLOAD_WAIT_UNTIL(uint, unsigned int)
SHMEM_OVERLOAD_WAIT_UNTIL(ulong, unsigned long)
SHMEM_OVERLOAD_WAIT_UNTIL(ulonglong, unsigned long long)
SHMEM_OVERLOAD_OLD_WAIT(short, short)
SHMEM_OVERLOAD_OLD_WAIT(int, int)
SHMEM_OVERLOAD_OLD_WAIT(longlong, long long)

#define SHMEM_SEVERAL(NAME, TYPE, result, name)                                                                 \
  SHMEM_OVERLOAD(result, NAME, name, (TYPE * ivars, size_t nelems, const int* status, int cmp, TYPE cmp_value), \
                 (ivars, nelems, status, cmp, cmp_value))                                                       \
  SHMEM_OVERLOAD(result, NAME, name##_vector,                                                                   \
                 (TYPE * ivars, size_t nelems, const int* status, int cmp, const TYPE* cmp_values),             \
                 (ivars, nelems, status, cmp, cmp_values))
#define SHMEM_SOME(NAME, TYPE, name)                                                                                  \
  SHMEM_OVERLOAD(size_t, NAME, name,                                                                                  \
                 (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, TYPE cmp_value),         \
                 (ivars, nelems, indices, status, cmp, cmp_value))                                                    \
  SHMEM_OVERLOAD(size_t, NAME, name##_vector,                                                                         \
                 (TYPE * ivars, size_t nelems, size_t * indices, const int* status, int cmp, const TYPE* cmp_values), \
                 (ivars, nelems, indices, status, cmp, cmp_values))
#define SHMEM_OVERLOAD_SEVERAL(NAME, TYPE)          \
  SHMEM_SEVERAL(NAME, TYPE, void, wait_until_all)   \
  SHMEM_SEVERAL(NAME, TYPE, size_t, wait_until_any) \
  SHMEM_SEVERAL(NAME, TYPE, int, test_all)          \
  SHMEM_SEVERAL(NAME, TYPE, size_t, test_any)       \
  SHMEM_SOME(NAME, TYPE, wait_until_some)           \
  SHMEM_SOME(NAME, TYPE, test_some)
SHMEM_WAIT_GENERIC_TYPES(SHMEM_OVERLOAD_SEVERAL)

#define SHMEM_ON_TEAM(NAME, TYPE, name)                                                               \
  SHMEM_OVERLOAD(int, NAME, name, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t count), \
                 (team, dest, source, count))
#define SHMEM_OVERLOAD_MOVE(NAME, TYPE)                                                                             \
  SHMEM_ON_TEAM(NAME, TYPE, collect)                                                                                \
  SHMEM_ON_TEAM(NAME, TYPE, fcollect)                                                                               \
  SHMEM_ON_TEAM(NAME, TYPE, alltoall)                                                                               \
  SHMEM_ON_TEAM(NAME, TYPE, max_reduce)                                                                             \
  SHMEM_ON_TEAM(NAME, TYPE, min_reduce)                                                                             \
  SHMEM_OVERLOAD(int, NAME, broadcast,                                                                              \
                 (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems, int PE_root),                  \
                 (team, dest, source, nelems, PE_root))                                                             \
  SHMEM_OVERLOAD(int, NAME, alltoalls,                                                                              \
                 (shmem_team_t team, TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
                 (team, dest, source, dst, sst, nelems))
SHMEM_RMA_BASIC_TYPES(SHMEM_OVERLOAD_MOVE)
#define SHMEM_OVERLOAD_ARITHMETIC(NAME, TYPE) \
  SHMEM_ON_TEAM(NAME, TYPE, sum_reduce)       \
  SHMEM_ON_TEAM(NAME, TYPE, prod_reduce)      \
  SHMEM_ON_TEAM(NAME, TYPE, sum_inscan)       \
  SHMEM_ON_TEAM(NAME, TYPE, sum_exscan)
SHMEM_ARITHMETIC_REDUCE_BASIC_TYPES(SHMEM_OVERLOAD_ARITHMETIC)
#define SHMEM_OVERLOAD_BITS(NAME, TYPE) \
  SHMEM_ON_TEAM(NAME, TYPE, and_reduce) \
  SHMEM_ON_TEAM(NAME, TYPE, or_reduce)  \
  SHMEM_ON_TEAM(NAME, TYPE, xor_reduce)
SHMEM_BITWISE_REDUCE_GENERIC_TYPES(SHMEM_OVERLOAD_BITS)

/* Complex numbers of C, where the compiler has them in C++: the same two numbers in memory as C++'s. */
#ifdef __GNUC__
__extension__ typedef float _Complex shmemi_complexf;
__extension__ typedef double _Complex shmemi_complexd;
#define SHMEM_ON_TEAM_IN_C(NAME, TYPE, name)                                                                         \
  inline int shmem_##NAME##_##name(shmem_team_t team, shmemi_##NAME* dest, const shmemi_##NAME* source,              \
                                   size_t count) noexcept {                                                          \
    return shmem_##NAME##_##name(team, reinterpret_cast<TYPE*>(dest), reinterpret_cast<const TYPE*>(source), count); \
  }                                                                                                                  \
  inline int shmem_##name(shmem_team_t team, shmemi_##NAME* dest, const shmemi_##NAME* source,                       \
                          size_t count) noexcept {                                                                   \
    return shmem_##NAME##_##name(team, dest, source, count);                                                         \
  }
#define SHMEM_TO_ALL_IN_C(NAME, TYPE, name)                                                                          \
  inline void shmem_##NAME##_##name(shmemi_##NAME* dest, const shmemi_##NAME* source, int nreduce, SHMEM_ACTIVE_SET, \
                                    shmemi_##NAME* pWrk, long* pSync) noexcept {                                     \
    shmem_##NAME##_##name(reinterpret_cast<TYPE*>(dest), reinterpret_cast<const TYPE*>(source), nreduce, PE_start,   \
                          logPE_stride, PE_size, reinterpret_cast<TYPE*>(pWrk), pSync);                              \
  }
#define SHMEM_OVERLOAD_COMPLEX_OF_C(NAME, TYPE) \
  SHMEM_ON_TEAM_IN_C(NAME, TYPE, sum_reduce)    \
  SHMEM_ON_TEAM_IN_C(NAME, TYPE, prod_reduce)   \
  SHMEM_ON_TEAM_IN_C(NAME, TYPE, sum_inscan)    \
  SHMEM_ON_TEAM_IN_C(NAME, TYPE, sum_exscan)    \
  SHMEM_TO_ALL_IN_C(NAME, TYPE, sum_to_all)     \
  SHMEM_TO_ALL_IN_C(NAME, TYPE, prod_to_all)
SHMEM_COMPLEX_TYPES(SHMEM_OVERLOAD_COMPLEX_OF_C)
#undef SHMEM_ON_TEAM_IN_C
#undef SHMEM_TO_ALL_IN_C
#undef SHMEM_OVERLOAD_COMPLEX_OF_C
#endif

#undef SHMEM_OVERLOAD
#undef SHMEM_OVERLOAD_WITH_CTX
#undef SHMEM_COPY
#undef SHMEM_STRIDED
#undef SHMEM_BLOCKS
#undef SHMEM_SIGNALLING
#undef SHMEM_CHANGE
#undef SHMEM_CHANGE_NBI
#undef SHMEM_SEVERAL
#undef SHMEM_SOME
#undef SHMEM_ON_TEAM

#endif
