/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Extensions of Sandia OpenSHMEM and Open MPI that OpenSHMEM 1.6 has under other names, for programs that use them.
 * Included by shmemx.h. Each is an inline function that calls the routine, or a macro; generic names are macros for the
 * generic names of shmem.h.
 */
#ifndef SHMEM_SHMEMX_COMPAT_H
#define SHMEM_SHMEMX_COMPAT_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEM_ALIAS static inline __attribute__((unused))

/* ---- Of Sandia OpenSHMEM ---- */

/* The PEs of this node. */
#define SHMEMX_TEAM_NODE SHMEM_TEAM_SHARED

/* Seconds since some time in the past, the same on all PEs of a node. Not collective; the library need not run. */
#define HAVE_SHMEMX_WTIME
SHMEM_API double shmemx_wtime(void) SHMEM_NOEXCEPT;

#define shmemx_pcontrol shmem_pcontrol

/* A hint for shmem_malloc_with_hints, without effect: the call is a barrier all the same. */
#define SHMEMX_MALLOC_NO_BARRIER 4L

/* Also with a context as the first argument, in C11 and C++. */
#define shmemx_signal_set shmem_signal_set
#define shmemx_signal_add shmem_signal_add
SHMEM_ALIAS void shmemx_ctx_signal_set(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) SHMEM_NOEXCEPT {
  shmem_ctx_signal_set(ctx, sig_addr, signal, pe);
}
SHMEM_ALIAS void shmemx_ctx_signal_add(shmem_ctx_t ctx, uint64_t* sig_addr, uint64_t signal, int pe) SHMEM_NOEXCEPT {
  shmem_ctx_signal_add(ctx, sig_addr, signal, pe);
}

#define SHMEM_ALIAS_BLOCKS(name, TYPE)                                                                              \
  SHMEM_ALIAS void shmemx_##name(TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,        \
                                 size_t nblocks, int pe) SHMEM_NOEXCEPT {                                           \
    shmem_##name(dest, source, dst, sst, bsize, nblocks, pe);                                                       \
  }                                                                                                                 \
  SHMEM_ALIAS void shmemx_ctx_##name(shmem_ctx_t ctx, TYPE* dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, \
                                     size_t bsize, size_t nblocks, int pe) SHMEM_NOEXCEPT {                         \
    shmem_ctx_##name(ctx, dest, source, dst, sst, bsize, nblocks, pe);                                              \
  }
#define SHMEM_ALIAS_RMA(NAME, TYPE)      \
  SHMEM_ALIAS_BLOCKS(NAME##_ibput, TYPE) \
  SHMEM_ALIAS_BLOCKS(NAME##_ibget, TYPE)
SHMEM_RMA_TYPES(SHMEM_ALIAS_RMA)
#undef SHMEM_ALIAS_RMA
#define SHMEM_ALIAS_RMA(SIZE, BYTES)    \
  SHMEM_ALIAS_BLOCKS(ibput##SIZE, void) \
  SHMEM_ALIAS_BLOCKS(ibget##SIZE, void)
SHMEM_SIZES(SHMEM_ALIAS_RMA)
#undef SHMEM_ALIAS_RMA
#undef SHMEM_ALIAS_BLOCKS
#define shmemx_ibput shmem_ibput
#define shmemx_ibget shmem_ibget

#define SHMEM_ALIAS_SCAN(name, TYPE)                                                                                \
  SHMEM_ALIAS int shmemx_##name(shmem_team_t team, TYPE* dest, const TYPE* source, size_t nreduce) SHMEM_NOEXCEPT { \
    return shmem_##name(team, dest, source, nreduce);                                                               \
  }
#define SHMEM_ALIAS_SCANS(NAME, TYPE)       \
  SHMEM_ALIAS_SCAN(NAME##_sum_inscan, TYPE) \
  SHMEM_ALIAS_SCAN(NAME##_sum_exscan, TYPE)
SHMEM_ARITHMETIC_REDUCE_TYPES(SHMEM_ALIAS_SCANS)
#undef SHMEM_ALIAS_SCANS
#undef SHMEM_ALIAS_SCAN
#define shmemx_sum_inscan shmem_sum_inscan
#define shmemx_sum_exscan shmem_sum_exscan

/* ---- Of Open MPI ---- */

/* Hints have no effect. */
enum {
  SHMEM_HINT_NONE = 0,
  SHMEM_HINT_LOW_LAT_MEM = 1 << 0,
  SHMEM_HINT_HIGH_BW_MEM = 1 << 1,
  SHMEM_HINT_NEAR_NIC_MEM = 1 << 2,
  SHMEM_HINT_DEVICE_GPU_MEM = 1 << 3,
  SHMEM_HINT_DEVICE_NIC_MEM = 1 << 4,
  SHMEM_HINT_PSYNC = 1 << 16,
  SHMEM_HINT_PWORK = 1 << 17,
  SHMEM_HINT_ATOMICS = 1 << 18
};
SHMEM_ALIAS void* shmemx_malloc_with_hint(size_t size, long hint) SHMEM_NOEXCEPT {
  (void)hint;
  return shmem_malloc(size);
}

/* X(NAME, TYPE, what the type is called in routines on active sets). */
#define SHMEM_ALIAS_WORDS(X) \
  X(int32, int32_t, int)     \
  X(int64, int64_t, long)
#define SHMEM_ALIAS_INTEGERS(X) \
  X(int16, int16_t, short)      \
  SHMEM_ALIAS_WORDS(X)

#define SHMEM_ALIAS_ONE(NAME, TYPE, OTHER)                                            \
  SHMEM_ALIAS void shmemx_##NAME##_p(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT { \
    shmem_##NAME##_p(dest, value, pe);                                                \
  }                                                                                   \
  SHMEM_ALIAS TYPE shmemx_##NAME##_g(const TYPE* source, int pe) SHMEM_NOEXCEPT {     \
    return shmem_##NAME##_g(source, pe);                                              \
  }
SHMEM_ALIAS_INTEGERS(SHMEM_ALIAS_ONE)
#undef SHMEM_ALIAS_ONE

#define SHMEM_ALIAS_AMO(NAME, TYPE, OTHER)                                                           \
  SHMEM_ALIAS TYPE shmemx_##NAME##_fetch(const TYPE* source, int pe) SHMEM_NOEXCEPT {                \
    return shmem_##NAME##_atomic_fetch(source, pe);                                                  \
  }                                                                                                  \
  SHMEM_ALIAS void shmemx_##NAME##_set(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT {              \
    shmem_##NAME##_atomic_set(dest, value, pe);                                                      \
  }                                                                                                  \
  SHMEM_ALIAS TYPE shmemx_##NAME##_swap(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT {             \
    return shmem_##NAME##_atomic_swap(dest, value, pe);                                              \
  }                                                                                                  \
  SHMEM_ALIAS TYPE shmemx_##NAME##_cswap(TYPE* dest, TYPE cond, TYPE value, int pe) SHMEM_NOEXCEPT { \
    return shmem_##NAME##_atomic_compare_swap(dest, cond, value, pe);                                \
  }                                                                                                  \
  SHMEM_ALIAS TYPE shmemx_##NAME##_fadd(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT {             \
    return shmem_##NAME##_atomic_fetch_add(dest, value, pe);                                         \
  }                                                                                                  \
  SHMEM_ALIAS void shmemx_##NAME##_add(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT {              \
    shmem_##NAME##_atomic_add(dest, value, pe);                                                      \
  }                                                                                                  \
  SHMEM_ALIAS TYPE shmemx_##NAME##_finc(TYPE* dest, int pe) SHMEM_NOEXCEPT {                         \
    return shmem_##NAME##_atomic_fetch_inc(dest, pe);                                                \
  }                                                                                                  \
  SHMEM_ALIAS void shmemx_##NAME##_inc(TYPE* dest, int pe) SHMEM_NOEXCEPT {                          \
    shmem_##NAME##_atomic_inc(dest, pe);                                                             \
  }                                                                                                  \
  SHMEM_ALIAS void shmemx_##NAME##_wait(TYPE* ivar, TYPE cmp_value) SHMEM_NOEXCEPT {                 \
    shmem_##NAME##_wait_until(ivar, SHMEM_CMP_NE, cmp_value);                                        \
  }                                                                                                  \
  SHMEM_ALIAS void shmemx_##NAME##_wait_until(TYPE* ivar, int cmp, TYPE cmp_value) SHMEM_NOEXCEPT {  \
    shmem_##NAME##_wait_until(ivar, cmp, cmp_value);                                                 \
  }
SHMEM_ALIAS_WORDS(SHMEM_ALIAS_AMO)
#undef SHMEM_ALIAS_AMO

#define SHMEM_ALIAS_BITS(NAME, TYPE, verb)                                                              \
  SHMEM_ALIAS TYPE shmemx_##NAME##_atomic_fetch_##verb(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT { \
    return shmem_##NAME##_atomic_fetch_##verb(dest, value, pe);                                         \
  }                                                                                                     \
  SHMEM_ALIAS void shmemx_##NAME##_atomic_##verb(TYPE* dest, TYPE value, int pe) SHMEM_NOEXCEPT {       \
    shmem_##NAME##_atomic_##verb(dest, value, pe);                                                      \
  }
#define SHMEM_ALIAS_BITWISE(NAME, TYPE) \
  SHMEM_ALIAS_BITS(NAME, TYPE, and)     \
  SHMEM_ALIAS_BITS(NAME, TYPE, or)      \
  SHMEM_ALIAS_BITS(NAME, TYPE, xor)
SHMEM_ALIAS_BITWISE(int32, int32_t)
SHMEM_ALIAS_BITWISE(int64, int64_t)
SHMEM_ALIAS_BITWISE(uint32, uint32_t)
SHMEM_ALIAS_BITWISE(uint64, uint64_t)
#undef SHMEM_ALIAS_BITWISE
#undef SHMEM_ALIAS_BITS

/* Reductions on active sets, under the name of the extension and the one that Open MPI's shmemx.h gives it, too. */
#define SHMEM_ALIAS_TO_ALL(name, TYPE, other)                                                                     \
  SHMEM_ALIAS void name(TYPE* dest, const TYPE* source, int nreduce, int PE_start, int logPE_stride, int PE_size, \
                        TYPE* pWrk, long* pSync) SHMEM_NOEXCEPT {                                                 \
    shmem_##other(dest, source, nreduce, PE_start, logPE_stride, PE_size, pWrk, pSync);                           \
  }
#define SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, verb)                                  \
  SHMEM_ALIAS_TO_ALL(shmemx_##NAME##_##verb##_to_all, TYPE, OTHER##_##verb##_to_all) \
  SHMEM_ALIAS_TO_ALL(shmem_##NAME##_##verb##_to_all, TYPE, OTHER##_##verb##_to_all)
#define SHMEM_ALIAS_REDUCES(NAME, TYPE, OTHER) \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, and)   \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, or)    \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, xor)   \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, max)   \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, min)   \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, sum)   \
  SHMEM_ALIAS_REDUCE(NAME, TYPE, OTHER, prod)
SHMEM_ALIAS_INTEGERS(SHMEM_ALIAS_REDUCES)
#undef SHMEM_ALIAS_REDUCES
#undef SHMEM_ALIAS_REDUCE
#undef SHMEM_ALIAS_TO_ALL
#undef SHMEM_ALIAS_WORDS
#undef SHMEM_ALIAS_INTEGERS

#define shmem_int32_wait shmemx_int32_wait
#define shmem_int64_wait shmemx_int64_wait

#undef SHMEM_ALIAS

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
