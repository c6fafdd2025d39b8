/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collective routines (OpenSHMEM 1.6, section 9.10). Included by shmem.h.
 *
 * Called by all PEs of the team, with the same arguments but for what is said; `dest` and `source` are symmetric.
 * Those of a team return 0, or non-zero with a message on standard error: SHMEM_TEAM_INVALID, a wrong argument, or a PE
 * that died. `dest` may be used, and `source` changed, when the call returns; other PEs may be in the call still.
 * `dest` and `source` do not overlap, or ("in place") may be the same.
 */
#ifndef SHMEM_SHMEM_COLLECTIVE_H
#define SHMEM_SHMEM_COLLECTIVE_H

#include "shmem_context.h"
#include "shmem_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * broadcast    `nelems` elements of PE_root's source to the dest of all PEs, its own too. In place on the root.
 * collect      the elements of all PEs, concatenated by PE number; `nelems` may differ from PE to PE.
 * fcollect     the same with equal `nelems` on all PEs.
 * alltoall     block i, of `nelems` elements, of PE j becomes block j of PE i.
 * alltoalls    the same with elements that are `dst` and `sst` apart.
 */
#define SHMEM_DECLARE_COLLECTIVE(NAME, TYPE)                                                               \
  SHMEM_DECLARE(int, NAME##_broadcast,                                                                     \
                (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems, int PE_root))          \
  SHMEM_DECLARE(int, NAME##_collect, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems))  \
  SHMEM_DECLARE(int, NAME##_fcollect, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems)) \
  SHMEM_DECLARE(int, NAME##_alltoall, (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nelems)) \
  SHMEM_DECLARE(int, NAME##_alltoalls,                                                                     \
                (shmem_team_t team, TYPE * dest, const TYPE* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))
SHMEM_RMA_TYPES(SHMEM_DECLARE_COLLECTIVE)
#undef SHMEM_DECLARE_COLLECTIVE

/* The same in bytes. */
SHMEM_DECLARE(int, broadcastmem, (shmem_team_t team, void* dest, const void* source, size_t nelems, int PE_root))
SHMEM_DECLARE(int, collectmem, (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_DECLARE(int, fcollectmem, (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_DECLARE(int, alltoallmem, (shmem_team_t team, void* dest, const void* source, size_t nelems))
SHMEM_DECLARE(int, alltoallsmem,
              (shmem_team_t team, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))

/* Element i of every dest becomes the combination of all PEs' elements i, in the order of their numbers. In
 * place. */
#define SHMEM_REDUCE_PARAMETERS(TYPE) (shmem_team_t team, TYPE * dest, const TYPE* source, size_t nreduce)
#define SHMEM_DECLARE_BITWISE(NAME, TYPE)                              \
  SHMEM_DECLARE(int, NAME##_and_reduce, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(int, NAME##_or_reduce, SHMEM_REDUCE_PARAMETERS(TYPE))  \
  SHMEM_DECLARE(int, NAME##_xor_reduce, SHMEM_REDUCE_PARAMETERS(TYPE))
#define SHMEM_DECLARE_ORDERED(NAME, TYPE)                              \
  SHMEM_DECLARE(int, NAME##_max_reduce, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(int, NAME##_min_reduce, SHMEM_REDUCE_PARAMETERS(TYPE))
/* inscan, exscan: of PEs 0 to this one, and to the one before this; exscan on PE 0 gives 0. In place. */
#define SHMEM_DECLARE_ARITHMETIC(NAME, TYPE)                            \
  SHMEM_DECLARE(int, NAME##_sum_reduce, SHMEM_REDUCE_PARAMETERS(TYPE))  \
  SHMEM_DECLARE(int, NAME##_prod_reduce, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(int, NAME##_sum_inscan, SHMEM_REDUCE_PARAMETERS(TYPE))  \
  SHMEM_DECLARE(int, NAME##_sum_exscan, SHMEM_REDUCE_PARAMETERS(TYPE))
SHMEM_BITWISE_REDUCE_TYPES(SHMEM_DECLARE_BITWISE)
SHMEM_ORDERED_REDUCE_TYPES(SHMEM_DECLARE_ORDERED)
SHMEM_ARITHMETIC_REDUCE_TYPES(SHMEM_DECLARE_ARITHMETIC)
#undef SHMEM_DECLARE_BITWISE
#undef SHMEM_DECLARE_ORDERED
#undef SHMEM_DECLARE_ARITHMETIC
#undef SHMEM_REDUCE_PARAMETERS

/*
 * Deprecated since 1.5: collectives on active sets, PEs PE_start, PE_start + 2^logPE_stride, ..., PE_size of them.
 * PE_root is a number in the set. pSync is symmetric, has as many words as said below, and SHMEM_SYNC_VALUE in each
 * before the first use and again after each. pWrk is not used. A wrong argument ends the job. The root's dest of a
 * broadcast is left as it is.
 */
#define SHMEM_SYNC_VALUE 0L
#define SHMEM_BARRIER_SYNC_SIZE 16
#define SHMEM_BCAST_SYNC_SIZE 16
#define SHMEM_COLLECT_SYNC_SIZE 17
#define SHMEM_ALLTOALL_SYNC_SIZE 16
#define SHMEM_ALLTOALLS_SYNC_SIZE 16
#define SHMEM_REDUCE_SYNC_SIZE 16
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1
#define SHMEM_SYNC_SIZE 17

#define SHMEM_ACTIVE_SET int PE_start, int logPE_stride, int PE_size
#define SHMEM_DECLARE_COLLECTIVE(BITS)                                                                                \
  SHMEM_DECLARE(void, broadcast##BITS,                                                                                \
                (void* dest, const void* source, size_t nelems, int PE_root, SHMEM_ACTIVE_SET, long* pSync))          \
  SHMEM_DECLARE(void, collect##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync))  \
  SHMEM_DECLARE(void, fcollect##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync)) \
  SHMEM_DECLARE(void, alltoall##BITS, (void* dest, const void* source, size_t nelems, SHMEM_ACTIVE_SET, long* pSync)) \
  SHMEM_DECLARE(                                                                                                      \
      void, alltoalls##BITS,                                                                                          \
      (void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, SHMEM_ACTIVE_SET, long* pSync))
SHMEM_DECLARE_COLLECTIVE(32)
SHMEM_DECLARE_COLLECTIVE(64)
#undef SHMEM_DECLARE_COLLECTIVE

#define SHMEM_REDUCE_PARAMETERS(TYPE) \
  (TYPE * dest, const TYPE* source, int nreduce, SHMEM_ACTIVE_SET, TYPE* pWrk, long* pSync)
#define SHMEM_DECLARE_BITWISE(NAME, TYPE)                               \
  SHMEM_DECLARE(void, NAME##_and_to_all, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(void, NAME##_or_to_all, SHMEM_REDUCE_PARAMETERS(TYPE))  \
  SHMEM_DECLARE(void, NAME##_xor_to_all, SHMEM_REDUCE_PARAMETERS(TYPE))
#define SHMEM_DECLARE_ORDERED(NAME, TYPE)                               \
  SHMEM_DECLARE(void, NAME##_max_to_all, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(void, NAME##_min_to_all, SHMEM_REDUCE_PARAMETERS(TYPE))
#define SHMEM_DECLARE_ARITHMETIC(NAME, TYPE)                            \
  SHMEM_DECLARE(void, NAME##_sum_to_all, SHMEM_REDUCE_PARAMETERS(TYPE)) \
  SHMEM_DECLARE(void, NAME##_prod_to_all, SHMEM_REDUCE_PARAMETERS(TYPE))
SHMEM_OLD_BITWISE_REDUCE_TYPES(SHMEM_DECLARE_BITWISE)
SHMEM_OLD_ORDERED_REDUCE_TYPES(SHMEM_DECLARE_ORDERED)
SHMEM_OLD_ARITHMETIC_REDUCE_TYPES(SHMEM_DECLARE_ARITHMETIC)
#undef SHMEM_DECLARE_BITWISE
#undef SHMEM_DECLARE_ORDERED
#undef SHMEM_DECLARE_ARITHMETIC
#undef SHMEM_REDUCE_PARAMETERS

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
