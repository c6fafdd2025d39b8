/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM's calls of engines that libshmem does not have: RoCE, SDMA and UDMA, so that programs compile. None does
 * anything: each prints once, with its name, that it is not supported, and returns ACLSHMEM_NOT_SUPPORTED, or 0 if its
 * result is a value of memory. The calls without an engine in their names do the same work here.
 *
 * C++ only; included by aclshmem_device.h. They take whatever that library's forms of them take.
 */
#ifndef SHMEM_ACLSHMEM_DEVICE_ENGINES_H
#define SHMEM_ACLSHMEM_DEVICE_ENGINES_H

#ifndef __cplusplus
#error "aclshmem_device_engines.h is for C++"
#endif

#include "aclshmem_memory.h"
#include "aclshmem_types.h"

/* The first parameter is for programs that name the type of the elements. */
#define ACLSHMEMI_NO_ENGINE(NAME)                                    \
  template <typename Element = void, typename... Arguments>          \
  int aclshmemx_##NAME(const Arguments&... /*all*/) noexcept {       \
    return aclshmemi_code(shmemx_not_supported("aclshmemx_" #NAME)); \
  }
#define ACLSHMEMI_NO_ATOMIC(ENGINE, NAME)                                              \
  template <typename T, typename... Arguments>                                         \
  T aclshmemx_##ENGINE##_atomic_##NAME(T* /*dst*/, Arguments... /*others*/) noexcept { \
    shmemx_not_supported("aclshmemx_" #ENGINE "_atomic_" #NAME);                       \
    return T(0);                                                                       \
  }
#define ACLSHMEMI_NO_ATOMICS(ENGINE)        \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch)        \
  ACLSHMEMI_NO_ATOMIC(ENGINE, set)          \
  ACLSHMEMI_NO_ATOMIC(ENGINE, compare_swap) \
  ACLSHMEMI_NO_ATOMIC(ENGINE, swap)         \
  ACLSHMEMI_NO_ATOMIC(ENGINE, inc)          \
  ACLSHMEMI_NO_ATOMIC(ENGINE, add)          \
  ACLSHMEMI_NO_ATOMIC(ENGINE, and)          \
  ACLSHMEMI_NO_ATOMIC(ENGINE, or)           \
  ACLSHMEMI_NO_ATOMIC(ENGINE, xor)          \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch_inc)    \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch_add)    \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch_and)    \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch_or)     \
  ACLSHMEMI_NO_ATOMIC(ENGINE, fetch_xor)

/* RoCE would use the address of the memory itself: see aclshmem_ptr. */
inline void* aclshmem_roce_ptr(void* ptr, int pe) noexcept {
  return aclshmem_ptr(ptr, pe);
}
ACLSHMEMI_NO_ENGINE(roce_get_nbi)
ACLSHMEMI_NO_ENGINE(roce_put_nbi)
ACLSHMEMI_NO_ENGINE(roce_quiet)
ACLSHMEMI_NO_ENGINE(roce_team_sync)
ACLSHMEMI_NO_ENGINE(roce_sync)
ACLSHMEMI_NO_ENGINE(roce_sync_all)
ACLSHMEMI_NO_ENGINE(roce_barrier)
ACLSHMEMI_NO_ENGINE(roce_barrier_all)
ACLSHMEMI_NO_ATOMICS(roce)

/* Operations on a cache. */
enum class ACLSHMEMCMOTYPE : uint32_t { CMO_TYPE_PREFETCH = 6, CMO_TYPE_WRITEBACK, CMO_TYPE_INVALID, CMO_TYPE_FLUSH };
ACLSHMEMI_NO_ENGINE(sdma_get_nbi)
ACLSHMEMI_NO_ENGINE(sdma_put_nbi)
ACLSHMEMI_NO_ENGINE(sdma_qp_get_nbi)
ACLSHMEMI_NO_ENGINE(sdma_qp_put_nbi)
ACLSHMEMI_NO_ENGINE(cmo_nbi)
ACLSHMEMI_NO_ENGINE(cmo_qp_nbi)
ACLSHMEMI_NO_ENGINE(sdma_quiet)
ACLSHMEMI_NO_ENGINE(sdma_qp_quiet)
ACLSHMEMI_NO_ENGINE(sdma_notify_record)
ACLSHMEMI_NO_ENGINE(sdma_qp_notify_record)

ACLSHMEMI_NO_ENGINE(udma_get_nbi)
ACLSHMEMI_NO_ENGINE(udma_put_nbi)
ACLSHMEMI_NO_ENGINE(udma_qp_get_nbi)
ACLSHMEMI_NO_ENGINE(udma_qp_put_nbi)
ACLSHMEMI_NO_ENGINE(udma_relay_get_nbi)
ACLSHMEMI_NO_ENGINE(udma_relay_put_nbi)
ACLSHMEMI_NO_ENGINE(udma_put_signal_nbi)
ACLSHMEMI_NO_ENGINE(udma_quiet)
ACLSHMEMI_NO_ENGINE(udma_qp_quiet)
ACLSHMEMI_NO_ATOMICS(udma)

#undef ACLSHMEMI_NO_ATOMICS
#undef ACLSHMEMI_NO_ATOMIC
#undef ACLSHMEMI_NO_ENGINE

#endif
