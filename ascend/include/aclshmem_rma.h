/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: puts and gets. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_RMA_H
#define SHMEM_ACLSHMEM_RMA_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Remote memory access ----
 *
 * `dest` of a put and `source` of a get are symmetric; PE `pe` has them. Counts are of elements, and of bytes in
 * ...mem; strides are in elements, 1 or more. A copy is complete when the call returns, _nbi too; other PEs must be
 * notified (barrier, signal). A call with wrong arguments ends the job with a message that names it. Thread-safe.
 *
 * On the host the calls begin after the work of the stream NULL. */

ACLSHMEM_INLINE void aclshmemi_iput(const char* call, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                                    size_t nelems, size_t size, int pe) SHMEM_NOEXCEPT {
  const shmemx_blocks_t blocks = {dst, sst, 1, nelems, size};
  shmemx_put_blocks(call, dest, source, &blocks, pe);
}
ACLSHMEM_INLINE void aclshmemi_iget(const char* call, void* dest, const void* source, ptrdiff_t dst, ptrdiff_t sst,
                                    size_t nelems, size_t size, int pe) SHMEM_NOEXCEPT {
  const shmemx_blocks_t blocks = {dst, sst, 1, nelems, size};
  shmemx_get_blocks(call, dest, source, &blocks, pe);
}

#define ACLSHMEMI_RMA(NAME, T)                                                                                      \
  ACLSHMEM_INLINE void aclshmem_##NAME##_put(T* dest, const T* source, size_t nelems, int pe) SHMEM_NOEXCEPT {      \
    shmemx_put_elements("aclshmem_" #NAME "_put", dest, source, nelems, sizeof(T), pe);                             \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_get(T* dest, const T* source, size_t nelems, int pe) SHMEM_NOEXCEPT {      \
    shmemx_get_elements("aclshmem_" #NAME "_get", dest, source, nelems, sizeof(T), pe);                             \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_put_nbi(T* dest, const T* source, size_t nelems, int pe) SHMEM_NOEXCEPT {  \
    shmemx_put_elements("aclshmem_" #NAME "_put_nbi", dest, source, nelems, sizeof(T), pe);                         \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_get_nbi(T* dest, const T* source, size_t nelems, int pe) SHMEM_NOEXCEPT {  \
    shmemx_get_elements("aclshmem_" #NAME "_get_nbi", dest, source, nelems, sizeof(T), pe);                         \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_iput(T* dest, const T* source, ptrdiff_t dst_stride, ptrdiff_t src_stride, \
                                              size_t nelems, int pe) SHMEM_NOEXCEPT {                               \
    aclshmemi_iput("aclshmem_" #NAME "_iput", dest, source, dst_stride, src_stride, nelems, sizeof(T), pe);         \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_iget(T* dest, const T* source, ptrdiff_t dst_stride, ptrdiff_t src_stride, \
                                              size_t nelems, int pe) SHMEM_NOEXCEPT {                               \
    aclshmemi_iget("aclshmem_" #NAME "_iget", dest, source, dst_stride, src_stride, nelems, sizeof(T), pe);         \
  }                                                                                                                 \
  ACLSHMEM_INLINE void aclshmem_##NAME##_p(T* dest, const T value, int pe) SHMEM_NOEXCEPT {                         \
    shmemx_put_one("aclshmem_" #NAME "_p", dest, &value, sizeof(T), pe);                                            \
  }                                                                                                                 \
  ACLSHMEM_INLINE T aclshmem_##NAME##_g(const T* source, int32_t pe) SHMEM_NOEXCEPT {                               \
    T value;                                                                                                        \
    shmemx_get_one("aclshmem_" #NAME "_g", &value, source, sizeof(T), pe);                                          \
    return value;                                                                                                   \
  }
ACLSHMEM_HOST_TYPES(ACLSHMEMI_RMA)

#define ACLSHMEMI_RMA_BITS(BITS, BYTES)                                                                                \
  ACLSHMEM_INLINE void aclshmem_put##BITS(void* dest, const void* source, uint32_t nelems, int32_t pe)                 \
      SHMEM_NOEXCEPT {                                                                                                 \
    shmemx_put_elements("aclshmem_put" #BITS, dest, source, nelems, BYTES, pe);                                        \
  }                                                                                                                    \
  ACLSHMEM_INLINE void aclshmem_get##BITS(void* dest, const void* source, uint32_t nelems, int32_t pe)                 \
      SHMEM_NOEXCEPT {                                                                                                 \
    shmemx_get_elements("aclshmem_get" #BITS, dest, source, nelems, BYTES, pe);                                        \
  }                                                                                                                    \
  ACLSHMEM_INLINE void aclshmem_put##BITS##_nbi(void* dest, const void* source, uint32_t nelems, int32_t pe)           \
      SHMEM_NOEXCEPT {                                                                                                 \
    shmemx_put_elements("aclshmem_put" #BITS "_nbi", dest, source, nelems, BYTES, pe);                                 \
  }                                                                                                                    \
  ACLSHMEM_INLINE void aclshmem_get##BITS##_nbi(void* dest, const void* source, uint32_t nelems, int32_t pe)           \
      SHMEM_NOEXCEPT {                                                                                                 \
    shmemx_get_elements("aclshmem_get" #BITS "_nbi", dest, source, nelems, BYTES, pe);                                 \
  }                                                                                                                    \
  ACLSHMEM_INLINE void aclshmem_iput##BITS(void* dest, const void* source, ptrdiff_t dst_stride, ptrdiff_t src_stride, \
                                           size_t nelems, int pe) SHMEM_NOEXCEPT {                                     \
    aclshmemi_iput("aclshmem_iput" #BITS, dest, source, dst_stride, src_stride, nelems, BYTES, pe);                    \
  }                                                                                                                    \
  ACLSHMEM_INLINE void aclshmem_iget##BITS(void* dest, const void* source, ptrdiff_t dst_stride, ptrdiff_t src_stride, \
                                           size_t nelems, int pe) SHMEM_NOEXCEPT {                                     \
    aclshmemi_iget("aclshmem_iget" #BITS, dest, source, dst_stride, src_stride, nelems, BYTES, pe);                    \
  }
SHMEM_SIZES(ACLSHMEMI_RMA_BITS)
#undef ACLSHMEMI_RMA_BITS

ACLSHMEM_INLINE void aclshmem_putmem(void* dst, const void* src, size_t bytes, int32_t pe) SHMEM_NOEXCEPT {
  shmemx_put_elements("aclshmem_putmem", dst, src, bytes, 1, pe);
}
ACLSHMEM_INLINE void aclshmem_getmem(void* dst, const void* src, size_t bytes, int32_t pe) SHMEM_NOEXCEPT {
  shmemx_get_elements("aclshmem_getmem", dst, src, bytes, 1, pe);
}
ACLSHMEM_INLINE void aclshmem_putmem_nbi(void* dst, const void* src, size_t bytes, int32_t pe) SHMEM_NOEXCEPT {
  shmemx_put_elements("aclshmem_putmem_nbi", dst, src, bytes, 1, pe);
}
ACLSHMEM_INLINE void aclshmem_getmem_nbi(void* dst, const void* src, size_t bytes, int32_t pe) SHMEM_NOEXCEPT {
  shmemx_get_elements("aclshmem_getmem_nbi", dst, src, bytes, 1, pe);
}

/* ---- In the order of a stream ----
 *
 * A stream is one that aclrtCreateStream or shmemx_stream_create made; NULL: one that the library has. dst and src
 * belong to it until the copy is complete. */
ACLSHMEM_INLINE void aclshmemx_putmem_on_stream(void* dst, const void* src, size_t bytes, int32_t pe,
                                                aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_putmem_on_stream(dst, src, bytes, pe, (shmemx_stream_t*)stream);
}
ACLSHMEM_INLINE void aclshmemx_getmem_on_stream(void* dst, const void* src, size_t bytes, int32_t pe,
                                                aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_getmem_on_stream(dst, src, bytes, pe, (shmemx_stream_t*)stream);
}

ACLSHMEM_INLINE void aclshmemx_quiet_on_stream(aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_quiet_on_stream((shmemx_stream_t*)stream);
}

/* ---- Which scratch memory of a core the engines use, and how many queues they have ----
 *
 * Copies need neither here: the values are kept, for the program and for checks. ACLSHMEM_NOT_INITED before
 * aclshmemx_init_attr; ACLSHMEM_INVALID_VALUE for scratch of less than 128 bytes for RDMA and UDMA. */
ACLSHMEM_INLINE int aclshmemi_set_config(int engine, uint32_t least, uint64_t offset, uint32_t ub_size,
                                         uint32_t sync_id) SHMEM_NOEXCEPT {
  if (!aclshmemi_running()) {
    return ACLSHMEM_NOT_INITED;
  }
  if (ub_size < least) {
    return ACLSHMEM_INVALID_VALUE;
  }
  shmemx_engine_t* const ours = shmemx_engine(engine);
  ours->scratch = (int64_t)offset;
  ours->scratch_size = ub_size;
  ours->sync_id = sync_id;
  return ACLSHMEM_SUCCESS;
}
ACLSHMEM_INLINE int aclshmemx_set_mte_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  return aclshmemi_set_config(SHMEMX_ENGINE_MTE, 0, offset, ub_size, sync_id);
}
ACLSHMEM_INLINE int aclshmemx_set_sdma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  return aclshmemi_set_config(SHMEMX_ENGINE_SDMA, 0, offset, ub_size, sync_id);
}
ACLSHMEM_INLINE int aclshmemx_set_rdma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  return aclshmemi_set_config(SHMEMX_ENGINE_RDMA, ACLSHMEM_RDMA_MTE_STAGING_UB_SIZE, offset, ub_size, sync_id);
}
ACLSHMEM_INLINE int aclshmemx_set_udma_config(uint64_t offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  return aclshmemi_set_config(SHMEMX_ENGINE_UDMA, ACLSHMEM_UDMA_MTE_STAGING_UB_SIZE, offset, ub_size, sync_id);
}

/* How many queues (qp_idx) the calls of an engine accept: 1 to ACLSHMEM_MAX_QP_NUM, for SDMA up to SHMEMX_NOTIFIES.
 * Before aclshmemx_init_attr; ACLSHMEM_NOT_SUPPORTED after it, and for MTE, which has no queues. */
ACLSHMEM_INLINE int aclshmemx_set_qp_num(data_op_engine_type_t engine, uint32_t qp_num) SHMEM_NOEXCEPT {
  const uint32_t most = engine == ACLSHMEM_DATA_OP_SDMA ? SHMEMX_NOTIFIES : ACLSHMEM_MAX_QP_NUM;
  int ours = SHMEMX_ENGINE_SDMA;
  switch (engine) {
    case ACLSHMEM_DATA_OP_SDMA:
      break;
    case ACLSHMEM_DATA_OP_ROCE:
      ours = SHMEMX_ENGINE_RDMA;
      break;
    case ACLSHMEM_DATA_OP_UDMA:
      ours = SHMEMX_ENGINE_UDMA;
      break;
    default:
      return ACLSHMEM_NOT_SUPPORTED;
  }
  if (qp_num < 1 || qp_num > most) {
    return ACLSHMEM_INVALID_VALUE;
  }
  if (aclshmemi_running()) {
    return ACLSHMEM_NOT_SUPPORTED;
  }
  shmemx_engine(ours)->queues = qp_num;
  return ACLSHMEM_SUCCESS;
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
