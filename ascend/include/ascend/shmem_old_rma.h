/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The older names of Ascend SHMEM's data movement, which its programs still use: shmem_put_float_mem for
 * aclshmem_float_put, and so on, in all forms of the newer name. Included by ascend/shmem.h.
 */
#ifndef SHMEM_ASCEND_SHMEM_OLD_RMA_H
#define SHMEM_ASCEND_SHMEM_OLD_RMA_H

#include "../aclshmem.h"

#ifdef __cplusplus

#define ACLSHMEMI_OLD_NAME(OLD, NEW) \
  template <typename... Arguments>   \
  void OLD(Arguments... arguments) { \
    NEW(arguments...);               \
  }
#define ACLSHMEMI_OLD_NAMES_OF(PREFIX, NAME)                                         \
  ACLSHMEMI_OLD_NAME(PREFIX##_put_##NAME##_mem, aclshmem_##NAME##_put)               \
  ACLSHMEMI_OLD_NAME(PREFIX##_get_##NAME##_mem, aclshmem_##NAME##_get)               \
  ACLSHMEMI_OLD_NAME(PREFIX##_put_##NAME##_mem_nbi, aclshmem_##NAME##_put_nbi)       \
  ACLSHMEMI_OLD_NAME(PREFIX##_get_##NAME##_mem_nbi, aclshmem_##NAME##_get_nbi)       \
  ACLSHMEMI_OLD_NAME(PREFIX##_put_##NAME##_mem_signal, aclshmem_##NAME##_put_signal) \
  ACLSHMEMI_OLD_NAME(PREFIX##_put_##NAME##_mem_signal_nbi, aclshmem_##NAME##_put_signal_nbi)
#define ACLSHMEMI_OLD_NAMES(NAME, T)  \
  ACLSHMEMI_OLD_NAMES_OF(shmem, NAME) \
  ACLSHMEMI_OLD_NAMES_OF(aclshmem, NAME)
ACLSHMEM_DEVICE_TYPES(ACLSHMEMI_OLD_NAMES)
#undef ACLSHMEMI_OLD_NAMES
#undef ACLSHMEMI_OLD_NAMES_OF

ACLSHMEMI_OLD_NAME(shmem_mte_put_mem_nbi, aclshmemx_mte_put_nbi)
ACLSHMEMI_OLD_NAME(shmem_mte_get_mem_nbi, aclshmemx_mte_get_nbi)
ACLSHMEMI_OLD_NAME(shmem_roce_put_mem_nbi, aclshmemx_roce_put_nbi)
ACLSHMEMI_OLD_NAME(shmem_roce_get_mem_nbi, aclshmemx_roce_get_nbi)
/* OpenSHMEM has this name for the other types. */
ACLSHMEMI_OLD_NAME(shmem_int8_atomic_add, aclshmem_int8_atomic_add)
ACLSHMEMI_OLD_NAME(shmem_int16_atomic_add, aclshmem_int16_atomic_add)
ACLSHMEMI_OLD_NAME(shmem_half_atomic_add, aclshmem_half_atomic_add)
ACLSHMEMI_OLD_NAME(shmem_float_atomic_add, aclshmem_float_atomic_add)
/* And this one with signals of 64 bits. */
inline void shmem_putmem_signal(void* dst, const void* src, size_t bytes, int32_t* sig_addr, int32_t signal, int sig_op,
                                int pe) noexcept {
  aclshmem_putmem_signal(dst, src, bytes, sig_addr, signal, sig_op, pe);
}
inline void shmem_putmem_signal_nbi(void* dst, const void* src, size_t bytes, int32_t* sig_addr, int32_t signal,
                                    int sig_op, int pe) noexcept {
  aclshmem_putmem_signal_nbi(dst, src, bytes, sig_addr, signal, sig_op, pe);
}
#undef ACLSHMEMI_OLD_NAME

#else

#define ACLSHMEMI_OLD_PUT(NAME, T, OLD, NEW)                                      \
  ACLSHMEM_INLINE void shmem_##OLD(T* dst, const T* src, size_t nelems, int pe) { \
    aclshmem_##NAME##_##NEW(dst, src, nelems, pe);                                \
  }
#define ACLSHMEMI_OLD_PUT_SIGNAL(NAME, T, OLD, NEW)                                                                    \
  ACLSHMEM_INLINE void shmem_##OLD(T* dst, const T* src, size_t nelems, uint8_t* sig_addr, int32_t signal, int sig_op, \
                                   int pe) {                                                                           \
    aclshmem_##NAME##_##NEW(dst, src, nelems, sig_addr, signal, sig_op, pe);                                           \
  }
#define ACLSHMEMI_OLD_NAMES(NAME, T)                                     \
  ACLSHMEMI_OLD_PUT(NAME, T, put_##NAME##_mem, put)                      \
  ACLSHMEMI_OLD_PUT(NAME, T, get_##NAME##_mem, get)                      \
  ACLSHMEMI_OLD_PUT(NAME, T, put_##NAME##_mem_nbi, put_nbi)              \
  ACLSHMEMI_OLD_PUT(NAME, T, get_##NAME##_mem_nbi, get_nbi)              \
  ACLSHMEMI_OLD_PUT_SIGNAL(NAME, T, put_##NAME##_mem_signal, put_signal) \
  ACLSHMEMI_OLD_PUT_SIGNAL(NAME, T, put_##NAME##_mem_signal_nbi, put_signal_nbi)
ACLSHMEM_HOST_TYPES(ACLSHMEMI_OLD_NAMES)
#undef ACLSHMEMI_OLD_NAMES
#undef ACLSHMEMI_OLD_PUT_SIGNAL
#undef ACLSHMEMI_OLD_PUT

#endif

ACLSHMEM_INLINE int shmem_mte_set_ub_params(uint64_t offset, uint32_t ub_size, uint32_t event_id) SHMEM_NOEXCEPT {
  return aclshmemx_set_mte_config(offset, ub_size, event_id);
}

#endif
