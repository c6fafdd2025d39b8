/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for Ascend SHMEM, whose header has this name: put this folder before the others. */
#ifndef SHMEM_ASCEND_SHMEM_H
#define SHMEM_ASCEND_SHMEM_H

#include "../aclshmem.h"   /* IWYU pragma: export */
#include "shmem_old_rma.h" /* IWYU pragma: export */
#if defined(USE_SIMT) && defined(__cplusplus)
#include "../aclshmem_simt.h" /* IWYU pragma: export */
#endif

/* Names that OpenSHMEM has with another meaning: here a program means Ascend SHMEM's. */
#define shmem_finalize aclshmem_finalize
#define shmemx_barrier_on_stream aclshmemx_barrier_on_stream
#define shmemx_getmem_on_stream aclshmemx_getmem_on_stream
#define shmemx_putmem_on_stream aclshmemx_putmem_on_stream
#define shmemx_quiet_on_stream aclshmemx_quiet_on_stream

#define SHMEM_MAX_TEAMS ACLSHMEM_MAX_TEAMS

enum { DEFAULT_TIMEOUT = ACLSHMEM_DEFAULT_TIMEOUT };

#ifdef __cplusplus
/* What that library's examples read of its host state: the stream of calls without one, and for each core the notify
 * that aclshmemx_sdma_notify_record raises. */
typedef struct {
  void* default_stream;
  void* notify_arr[SHMEMX_NOTIFIES];
} aclshmem_host_state_t;
inline aclshmem_host_state_t aclshmemi_host_state() noexcept {
  aclshmem_host_state_t state = {};
  for (int core = 0; core < SHMEMX_NOTIFIES; ++core) {
    state.notify_arr[core] = shmemx_core_notify(core);
  }
  return state;
}
#if __cplusplus >= 201703L
inline aclshmem_host_state_t g_state_host = aclshmemi_host_state();
#endif
#endif

/* How that library's kernels keep memory coherent: see shmemx_dcci in shmem_device.h. */
ACLSHMEM_INLINE void dcci_cacheline(uint8_t* address) SHMEM_NOEXCEPT {
  shmemx_dcci(address);
}
ACLSHMEM_INLINE void dcci_cachelines(uint8_t* address, uint64_t length) SHMEM_NOEXCEPT {
  shmemx_dcci_range(address, length);
}
ACLSHMEM_INLINE void dcci_entire_cache(void) SHMEM_NOEXCEPT {
  shmemx_dcci_all();
}
ACLSHMEM_INLINE void dsb_all(void) SHMEM_NOEXCEPT {
  shmemx_dcci_all();
}

#endif
