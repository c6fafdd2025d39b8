/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's calls for kernels that run in threads (SIMT): namespace simt. C++ only; included by ascend/shmem.h if
 * USE_SIMT is defined.
 *
 * A thread is a lane of shmemx_run_lanes: the thread of a core runs its lanes in turn. Forms without a suffix are the
 * calling lane's own. Those with _block are for all lanes of the core, and those with _warp for 32 lanes with
 * successive numbers: all of these call it, one of them copies, and the data is complete for all of them after it.
 * Elements of a lane's own memory may be offsets in that of the core, as in aclshmem_device_mte.h.
 */
#ifndef SHMEM_ACLSHMEM_SIMT_H
#define SHMEM_ACLSHMEM_SIMT_H

#ifndef __cplusplus
#error "aclshmem_simt.h is for C++"
#endif

#include "aclshmem_device_mte.h"
#include "aclshmem_memory.h"

#define ACLSHMEM_SIMT_TYPES(X)     \
  X(half, aclshmem_half_t)         \
  X(bfloat16, aclshmem_bfloat16_t) \
  X(float, float)                  \
  X(int8, int8_t)                  \
  X(int16, int16_t)                \
  X(int32, int32_t)                \
  X(int64, int64_t)                \
  X(uint8, uint8_t)                \
  X(uint16, uint16_t)              \
  X(uint32, uint32_t)              \
  X(uint64, uint64_t)              \
  X(char, char)                    \
  X(char, signed char)             \
  X(char, unsigned char)

namespace simt {

enum : int { ACLSHMEMI_BLOCK = 0, ACLSHMEMI_WARP = 32 };

inline int aclshmem_my_pe() noexcept {
  return ::aclshmem_my_pe();
}
inline int aclshmem_n_pes() noexcept {
  return ::aclshmem_n_pes();
}
inline void* aclshmem_ptr(void* ptr, int pe) noexcept {
  return ::aclshmem_ptr(ptr, pe);
}

inline void aclshmemi_put(const char* call, void* dst, const void* src, size_t count, size_t size, int pe) noexcept {
  shmemx_put_elements(call, dst, shmemx_scratch(src), count, size, pe);
}
inline void aclshmemi_get(const char* call, void* dst, const void* src, size_t count, size_t size, int pe) noexcept {
  shmemx_get_elements(call, shmemx_scratch(dst), src, count, size, pe);
}

/* A copy (aclshmemi_put or _get) of a lane, of a block and of a warp; T may be void. */
#define ACLSHMEMI_SIMT_COPY(HEAD, T, NAME, PREFIX, MOVE, SIZE)                                     \
  HEAD inline void PREFIX##_##NAME(T* dst, const T* src, size_t count, int32_t pe) noexcept {      \
    MOVE("simt::" #PREFIX "_" #NAME, dst, src, count, SIZE, pe);                                   \
  }                                                                                                \
  HEAD inline void aclshmemx_##NAME##_block(T* dst, const T* src, size_t count, int pe) noexcept { \
    if (shmemx_sync_lanes(ACLSHMEMI_BLOCK) != 0) {                                                 \
      MOVE("simt::aclshmemx_" #NAME "_block", dst, src, count, SIZE, pe);                          \
    }                                                                                              \
    shmemx_sync_lanes(ACLSHMEMI_BLOCK);                                                            \
  }                                                                                                \
  HEAD inline void aclshmemx_##NAME##_warp(T* dst, const T* src, size_t count, int pe) noexcept {  \
    if (shmemx_sync_lanes(ACLSHMEMI_WARP) != 0) {                                                  \
      MOVE("simt::aclshmemx_" #NAME "_warp", dst, src, count, SIZE, pe);                           \
    }                                                                                              \
    shmemx_sync_lanes(ACLSHMEMI_WARP);                                                             \
  }
#define ACLSHMEMI_SIMT_TYPED(NAME, T)                                          \
  ACLSHMEMI_SIMT_COPY(, T, NAME##_put, aclshmem, aclshmemi_put, sizeof(T))     \
  ACLSHMEMI_SIMT_COPY(, T, NAME##_get, aclshmem, aclshmemi_get, sizeof(T))     \
  ACLSHMEMI_SIMT_COPY(, T, NAME##_put_nbi, aclshmem, aclshmemi_put, sizeof(T)) \
  ACLSHMEMI_SIMT_COPY(, T, NAME##_get_nbi, aclshmem, aclshmemi_get, sizeof(T)) \
  inline void aclshmem_##NAME##_p(T* dst, const T value, int pe) noexcept {    \
    shmemx_put_one("simt::aclshmem_" #NAME "_p", dst, &value, sizeof(T), pe);  \
  }
ACLSHMEM_SIMT_TYPES(ACLSHMEMI_SIMT_TYPED)
#undef ACLSHMEMI_SIMT_TYPED
#define ACLSHMEMI_SIMT_G(NAME, T)                                             \
  inline T aclshmem_##NAME##_g(const T* src, int32_t pe) noexcept {           \
    T value;                                                                  \
    shmemx_get_one("simt::aclshmem_" #NAME "_g", &value, src, sizeof(T), pe); \
    return value;                                                             \
  }
ACLSHMEM_SIMT_TYPES(ACLSHMEMI_SIMT_G)
#undef ACLSHMEMI_SIMT_G

#define ACLSHMEMI_SIMT_BITS(BITS, BYTES)                                       \
  ACLSHMEMI_SIMT_COPY(, void, put##BITS, aclshmem, aclshmemi_put, BYTES)       \
  ACLSHMEMI_SIMT_COPY(, void, get##BITS, aclshmem, aclshmemi_get, BYTES)       \
  ACLSHMEMI_SIMT_COPY(, void, put##BITS##_nbi, aclshmem, aclshmemi_put, BYTES) \
  ACLSHMEMI_SIMT_COPY(, void, get##BITS##_nbi, aclshmem, aclshmemi_get, BYTES)
SHMEM_SIZES(ACLSHMEMI_SIMT_BITS)
#undef ACLSHMEMI_SIMT_BITS
ACLSHMEMI_SIMT_COPY(, void, putmem, aclshmem, aclshmemi_put, 1)
ACLSHMEMI_SIMT_COPY(, void, getmem, aclshmem, aclshmemi_get, 1)
ACLSHMEMI_SIMT_COPY(, void, putmem_nbi, aclshmem, aclshmemi_put, 1)
ACLSHMEMI_SIMT_COPY(, void, getmem_nbi, aclshmem, aclshmemi_get, 1)
ACLSHMEMI_SIMT_COPY(template <typename T>, T, mte_put_nbi, aclshmemx, aclshmemi_put, sizeof(T))
ACLSHMEMI_SIMT_COPY(template <typename T>, T, mte_get_nbi, aclshmemx, aclshmemi_get, sizeof(T))
#undef ACLSHMEMI_SIMT_COPY

}  // namespace simt

#endif
