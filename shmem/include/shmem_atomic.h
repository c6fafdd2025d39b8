/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Atomic memory operations and signals (OpenSHMEM 1.6, sections 9.7 and 9.8). Included by shmem.h.
 *
 * The object is symmetric, aligned to its size, and is PE `pe`'s. Operations on one object by any PEs and any of these
 * routines are atomic with respect to each other, whatever the two types are if they have the same size; not with
 * respect to put and get. Thread-safe.
 */
#ifndef SHMEM_SHMEM_ATOMIC_H
#define SHMEM_SHMEM_ATOMIC_H

#include "shmem_context.h"
#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Routines that return a TYPE return the previous value. The _nbi forms store it in *fetch at the latest when quiet
 * returns. compare_swap stores `value` if the previous value was `cond`. */
#define SHMEM_DECLARE_AMO(NAME, TYPE)                                                               \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch, (const TYPE* source, int pe))                   \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_set, (TYPE * dest, TYPE value, int pe))                \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_swap, (TYPE * dest, TYPE value, int pe))               \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_nbi, (TYPE * fetch, const TYPE* source, int pe)) \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_swap_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe))
SHMEM_EXTENDED_AMO_TYPES(SHMEM_DECLARE_AMO)
#undef SHMEM_DECLARE_AMO

#define SHMEM_DECLARE_AMO(NAME, TYPE)                                                                    \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_compare_swap, (TYPE * dest, TYPE cond, TYPE value, int pe)) \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch_inc, (TYPE * dest, int pe))                           \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_inc, (TYPE * dest, int pe))                                 \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch_add, (TYPE * dest, TYPE value, int pe))               \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_add, (TYPE * dest, TYPE value, int pe))                     \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_compare_swap_nbi,                                           \
                         (TYPE * fetch, TYPE * dest, TYPE cond, TYPE value, int pe))                     \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_inc_nbi, (TYPE * fetch, TYPE * dest, int pe))         \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_add_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe))
SHMEM_AMO_TYPES(SHMEM_DECLARE_AMO)
#undef SHMEM_DECLARE_AMO

/* Also used by shmem_compat.h. */
#define SHMEM_DECLARE_BITWISE_AMO(NAME, TYPE)                                                                \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch_and, (TYPE * dest, TYPE value, int pe))                   \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_and, (TYPE * dest, TYPE value, int pe))                         \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch_or, (TYPE * dest, TYPE value, int pe))                    \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_or, (TYPE * dest, TYPE value, int pe))                          \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_atomic_fetch_xor, (TYPE * dest, TYPE value, int pe))                   \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_xor, (TYPE * dest, TYPE value, int pe))                         \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_and_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe)) \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_or_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe))  \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_atomic_fetch_xor_nbi, (TYPE * fetch, TYPE * dest, TYPE value, int pe))
SHMEM_BITWISE_AMO_TYPES(SHMEM_DECLARE_BITWISE_AMO)

/* Deprecated since 1.4: the same without atomic_ in the name. */
#define SHMEM_DECLARE_AMO(NAME, TYPE)                                \
  SHMEM_DECLARE(TYPE, NAME##_fetch, (const TYPE* source, int pe))    \
  SHMEM_DECLARE(void, NAME##_set, (TYPE * dest, TYPE value, int pe)) \
  SHMEM_DECLARE(TYPE, NAME##_swap, (TYPE * dest, TYPE value, int pe))
SHMEM_EXTENDED_AMO_TYPES(SHMEM_DECLARE_AMO)
#undef SHMEM_DECLARE_AMO
#define SHMEM_DECLARE_AMO(NAME, TYPE)                                             \
  SHMEM_DECLARE(TYPE, NAME##_cswap, (TYPE * dest, TYPE cond, TYPE value, int pe)) \
  SHMEM_DECLARE(TYPE, NAME##_finc, (TYPE * dest, int pe))                         \
  SHMEM_DECLARE(void, NAME##_inc, (TYPE * dest, int pe))                          \
  SHMEM_DECLARE(TYPE, NAME##_fadd, (TYPE * dest, TYPE value, int pe))             \
  SHMEM_DECLARE(void, NAME##_add, (TYPE * dest, TYPE value, int pe))
SHMEM_AMO_TYPES(SHMEM_DECLARE_AMO)
#undef SHMEM_DECLARE_AMO

/* ---- Signals: 64-bit words in symmetric memory ---- */

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* A put, and then `signal` is stored to (SHMEM_SIGNAL_SET) or added to (SHMEM_SIGNAL_ADD) the signal of PE `pe`: a
 * PE that sees the signal sees the data. _nbi: `source` must not be changed before quiet. */
#define SHMEM_DECLARE_SIGNAL(NAME, TYPE)                                                                         \
  SHMEM_DECLARE_WITH_CTX(                                                                                        \
      void, NAME##_put_signal,                                                                                   \
      (TYPE * dest, const TYPE* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                        \
      void, NAME##_put_signal_nbi,                                                                               \
      (TYPE * dest, const TYPE* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe))
SHMEM_RMA_TYPES(SHMEM_DECLARE_SIGNAL)
#undef SHMEM_DECLARE_SIGNAL
#define SHMEM_DECLARE_SIGNAL(SIZE, BYTES)                                                                       \
  SHMEM_DECLARE_WITH_CTX(                                                                                       \
      void, put##SIZE##_signal,                                                                                 \
      (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                       \
      void, put##SIZE##_signal_nbi,                                                                             \
      (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe))
SHMEM_SIZES(SHMEM_DECLARE_SIGNAL)
#undef SHMEM_DECLARE_SIGNAL
SHMEM_DECLARE_WITH_CTX(void, putmem_signal,
                       (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op,
                        int pe))
SHMEM_DECLARE_WITH_CTX(void, putmem_signal_nbi,
                       (void* dest, const void* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op,
                        int pe))

/* Stores to, or adds to, the signal of PE `pe`, after this thread's earlier puts to it. */
SHMEM_DECLARE_WITH_CTX(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe))
SHMEM_DECLARE_WITH_CTX(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe))
/* This PE's own signal. */
SHMEM_DECLARE(uint64_t, signal_fetch, (const uint64_t* sig_addr))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
