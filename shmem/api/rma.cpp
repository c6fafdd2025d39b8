// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, section 9.6: copies to and from a PE.
#include "shmem/api/copy_calls.hpp"

using namespace shmem::api;  // NOLINT(google-build-using-namespace): the bodies of the routines, all of them

// The routines of one kind of element. On this node a copy is complete when the call returns, _nbi or not.
#define SHMEM_DEFINE_RMA(PREFIX, SUFFIX, TYPE, SIZE)                                                                \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         put<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX, (TYPE * dest, const TYPE* source, size_t nelems, int pe),       \
                         get<SIZE>, (dest, source, nelems))                                                         \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##put##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         start_put<SIZE>, (dest, source, nelems))                                                   \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##get##SUFFIX##_nbi, (TYPE * dest, const TYPE* source, size_t nelems, int pe), \
                         start_get<SIZE>, (dest, source, nelems))                                                   \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##iput##SUFFIX,                                                                \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
                         strided_put<SIZE>, (dest, source, dst, sst, nelems))                                       \
  SHMEM_ROUTINE_WITH_CTX(void, PREFIX##iget##SUFFIX,                                                                \
                         (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),    \
                         strided_get<SIZE>, (dest, source, dst, sst, nelems))                                       \
  SHMEM_ROUTINE_WITH_CTX(                                                                                           \
      void, PREFIX##ibput##SUFFIX,                                                                                  \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),        \
      block_put<SIZE>, (dest, source, dst, sst, bsize, nblocks))                                                    \
  SHMEM_ROUTINE_WITH_CTX(                                                                                           \
      void, PREFIX##ibget##SUFFIX,                                                                                  \
      (TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),        \
      block_get<SIZE>, (dest, source, dst, sst, bsize, nblocks))

#define SHMEM_DEFINE_TYPED(NAME, TYPE)                                                              \
  SHMEM_DEFINE_RMA(NAME##_, , TYPE, sizeof(TYPE))                                                   \
  SHMEM_ROUTINE_WITH_CTX(void, NAME##_p, (TYPE * dest, TYPE value, int pe), put_one, (dest, value)) \
  SHMEM_ROUTINE_WITH_CTX(TYPE, NAME##_g, (const TYPE* source, int pe), get_one, (source))
#define SHMEM_DEFINE_SIZED(BITS, BYTES) SHMEM_DEFINE_RMA(, BITS, void, BYTES)

SHMEM_RMA_TYPES(SHMEM_DEFINE_TYPED)
SHMEM_SIZES(SHMEM_DEFINE_SIZED)

SHMEM_ROUTINE_WITH_CTX(void, putmem, (void* dest, const void* source, size_t nelems, int pe), put_bytes,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, getmem, (void* dest, const void* source, size_t nelems, int pe), get_bytes,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, putmem_nbi, (void* dest, const void* source, size_t nelems, int pe), start_put<1>,
                       (dest, source, nelems))
SHMEM_ROUTINE_WITH_CTX(void, getmem_nbi, (void* dest, const void* source, size_t nelems, int pe), start_get<1>,
                       (dest, source, nelems))
