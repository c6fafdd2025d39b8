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

/* ---- Which scratch memory of a core the engines use ----
 *
 * Copies need no scratch here, and the setting is ignored. ACLSHMEM_NOT_INITED before aclshmemx_init_attr. MTE is the
 * only engine. The others return ACLSHMEM_INVALID_PARAM for scratch below their minimum (64 bytes, 128), else
 * ACLSHMEM_NOT_SUPPORTED. */
ACLSHMEM_INLINE int aclshmemi_set_config(const char* call, uint32_t ub_size, uint32_t least) SHMEM_NOEXCEPT {
  if (!aclshmemi_running()) {
    return ACLSHMEM_NOT_INITED;
  }
  return ub_size < least ? ACLSHMEM_INVALID_PARAM : aclshmemi_code(shmemx_not_supported(call));
}
ACLSHMEM_INLINE int aclshmemx_set_mte_config(uint64_t ub_offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  (void)ub_offset;
  (void)ub_size;
  (void)sync_id;
  return aclshmemi_running() ? ACLSHMEM_SUCCESS : ACLSHMEM_NOT_INITED;
}
ACLSHMEM_INLINE int aclshmemx_set_sdma_config(uint64_t ub_offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  (void)ub_offset;
  (void)sync_id;
  return aclshmemi_set_config("aclshmemx_set_sdma_config", ub_size, 64);
}
ACLSHMEM_INLINE int aclshmemx_set_rdma_config(uint64_t ub_offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  (void)ub_offset;
  (void)sync_id;
  return aclshmemi_set_config("aclshmemx_set_rdma_config", ub_size, 128);
}
ACLSHMEM_INLINE int aclshmemx_set_udma_config(uint64_t ub_offset, uint32_t ub_size, uint32_t sync_id) SHMEM_NOEXCEPT {
  (void)ub_offset;
  (void)sync_id;
  return aclshmemi_set_config("aclshmemx_set_udma_config", ub_size, 128);
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
