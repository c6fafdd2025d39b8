/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals between PEs of a node by the names of Ascend SHMEM's device code. See ../shmemi_device_common.h.
 *
 * Two things differ from that library, where they are traps:
 *  - A wait ends when the word is cmp_val *or later* (shmemx_word32_wait_at_least). There it accepts cmp_val and
 *    cmp_val + 1 alone, and misses a peer that is two barriers ahead.
 *  - A wait ends with the job, with the failure of another core and, if it is set, after SHMEM_BARRIER_TIMEOUT; then it
 *    returns the last value seen, the core keeps the error, and shmemx_launch returns it.
 */
#ifndef SHMEM_ASCEND_SHMEMI_DEVICE_P2P_H
#define SHMEM_ASCEND_SHMEMI_DEVICE_P2P_H

#include "../shmemi_device_common.h"

/* Stores `val`; the core's earlier stores are visible to a PE that sees it. `addr` may be one of shmemi_ptr. */
SHMEM_DEVICE void shmemi_signal_set(__gm__ int32_t* addr, int32_t val) noexcept {
  shmemx_word32_set(addr, val);
}
/* The same in `pe`, for an address of this PE. Between nodes it takes an address in the symmetric heap. */
SHMEM_DEVICE void shmemi_signal_set(__gm__ int32_t* addr, int pe, int32_t val) noexcept {
  if (void* const there = shmemi_ptr(addr, pe)) {
    shmemx_word32_set(static_cast<int32_t*>(there), val);
  } else {
    shmemx_signal32("shmemi_signal_set", addr, val, SHMEM_SIGNAL_SET, pe);
  }
}

SHMEM_DEVICE int32_t shmemi_signal_wait_until_eq_for_barrier(__gm__ int32_t* sig_addr, int32_t cmp_val) noexcept {
  return shmemx_word32_wait_at_least(sig_addr, cmp_val);
}

#endif
