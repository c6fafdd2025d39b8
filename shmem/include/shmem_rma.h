/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote memory access and its order (OpenSHMEM 1.6, sections 9.6 and 9.12). Included by shmem.h.
 *
 * `dest` of a put and `source` of a get are symmetric; `pe` has them. Elements are TYPE, or SIZE bits in the routines
 * that are named so, or bytes in ...mem. Counts are of elements; 0 moves nothing. `dest` and `source` do not overlap.
 * Thread-safe.
 */
#ifndef SHMEM_SHMEM_RMA_H
#define SHMEM_SHMEM_RMA_H

#include "shmem_context.h"
#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * put, p      copy to PE `pe`. `source` may be reused on return; complete at the target after quiet or a barrier.
 * get, g      copy from PE `pe`. The data is there on return.
 * iput, iget  copy elements 0, dst, 2 * dst, ... from elements 0, sst, 2 * sst, ...; strides are 1 or more.
 * ibput, ...  the same with blocks of `bsize` elements, whose beginnings are that far apart; strides are `bsize` or
 *             more.
 * _nbi        may return before the copy is made: `source` must not be changed, nor `dest` looked at, before quiet.
 */
#define SHMEM_DECLARE_RMA(NAME, TYPE)                                                                            \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_put, (TYPE * dest, const TYPE* source, size_t nelems, int pe))             \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_p, (TYPE * dest, TYPE value, int pe))                                      \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_iput,                                                                      \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                        \
      void, NAME##_ibput,                                                                                        \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))     \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_get, (TYPE * dest, const TYPE* source, size_t nelems, int pe))             \
  SHMEM_DECLARE_WITH_CTX(TYPE, NAME##_g, (const TYPE* source, int pe))                                           \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_iget,                                                                      \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                        \
      void, NAME##_ibget,                                                                                        \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))     \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_put_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe))         \
  SHMEM_DECLARE_WITH_CTX(void, NAME##_get_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe))
SHMEM_RMA_TYPES(SHMEM_DECLARE_RMA)
#undef SHMEM_DECLARE_RMA

#define SHMEM_DECLARE_RMA(SIZE, BYTES)                                                                          \
  SHMEM_DECLARE_WITH_CTX(void, put##SIZE, (void* dest, const void* source, size_t nelems, int pe))              \
  SHMEM_DECLARE_WITH_CTX(void, iput##SIZE,                                                                      \
                         (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                       \
      void, ibput##SIZE,                                                                                        \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))     \
  SHMEM_DECLARE_WITH_CTX(void, get##SIZE, (void* dest, const void* source, size_t nelems, int pe))              \
  SHMEM_DECLARE_WITH_CTX(void, iget##SIZE,                                                                      \
                         (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)) \
  SHMEM_DECLARE_WITH_CTX(                                                                                       \
      void, ibget##SIZE,                                                                                        \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe))     \
  SHMEM_DECLARE_WITH_CTX(void, put##SIZE##_nbi, (void* dest, const void* source, size_t nelems, int pe))        \
  SHMEM_DECLARE_WITH_CTX(void, get##SIZE##_nbi, (void* dest, const void* source, size_t nelems, int pe))
SHMEM_SIZES(SHMEM_DECLARE_RMA)
#undef SHMEM_DECLARE_RMA

SHMEM_DECLARE_WITH_CTX(void, putmem, (void* dest, const void* source, size_t nelems, int pe))
SHMEM_DECLARE_WITH_CTX(void, getmem, (void* dest, const void* source, size_t nelems, int pe))
SHMEM_DECLARE_WITH_CTX(void, putmem_nbi, (void* dest, const void* source, size_t nelems, int pe))
SHMEM_DECLARE_WITH_CTX(void, getmem_nbi, (void* dest, const void* source, size_t nelems, int pe))

/* Orders this thread's earlier puts, atomics and signals to a PE before its later ones to the same PE. */
SHMEM_DECLARE(void, fence, (void))
SHMEM_DECLARE(void, ctx_fence, (shmem_ctx_t ctx))
/* Completes all of them, to every PE. */
SHMEM_DECLARE(void, quiet, (void))
SHMEM_DECLARE(void, ctx_quiet, (shmem_ctx_t ctx))
/* Completes those to the `npes` PEs of the list. */
SHMEM_DECLARE(void, pe_quiet, (const int* target_pes, size_t npes))
SHMEM_DECLARE(void, ctx_pe_quiet, (shmem_ctx_t ctx, const int* target_pes, size_t npes))

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
