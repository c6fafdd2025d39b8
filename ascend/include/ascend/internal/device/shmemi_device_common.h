/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For kernels that use names from inside Ascend SHMEM's device code (shmemi_...), at its paths: types, addresses, loads
 * and stores. Signals: sync/shmemi_device_p2p.h; barriers: sync/shmemi_device_barrier.h. C++ only.
 *
 * The names stand over public calls. Layouts are not those of that library, and these differ on purpose:
 *  - The state is a view that a call fills in, not a structure in device memory: team_pools looks a team up.
 *  - sync arrays and counters are the words of shmemx_team_sync_pool and shmemx_core_sync_pool, 64 bytes each. Numbers
 *    in them only grow, and waits take a number that is larger.
 *  - shmemi_ptr is NULL for PEs of other nodes.
 */
#ifndef SHMEM_ASCEND_SHMEMI_DEVICE_COMMON_H
#define SHMEM_ASCEND_SHMEMI_DEVICE_COMMON_H

#include "../../shmem.h"
#include "../../shmem_api.h"

#ifndef __cplusplus
#error "shmemi_device_common.h is for C++"
#endif

/* NOLINTBEGIN(bugprone-reserved-identifier): the names are Ascend C's */
#ifndef __gm__
#define __gm__
#endif
/* NOLINTEND(bugprone-reserved-identifier) */
#define SHMEM_DEVICE inline

/* How many cores look at other PEs in shmemi_barrier_npu_v3, and the radix of _v2, at most. SHMEM_BARRIER_RADIX lowers
 * it for the library's own barriers. */
#define SHMEM_BARRIER_TG_DISSEM_KVAL 8

typedef shmemx_sync_word_t shmemi_sync_bit;
#define SHMEMI_SYNCBIT_SIZE sizeof(shmemi_sync_bit)
typedef aclshmemx_team_t shmemi_team_t;
typedef aclshmem_device_host_state_t shmemi_device_host_state_t;

/* The sync pool of a team of this PE, and the number of its last barrier there. */
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_team_sync_array(int team_idx) noexcept {
  return aclshmemi_get_team_sync_pool(team_idx);
}
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_team_sync_counter(int team_idx) noexcept {
  return aclshmemi_get_team_sync_counter(team_idx);
}
/* The sync pool of the cores of this PE, and its counter; for cores only. */
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_core_sync_array() noexcept {
  return shmemx_core_sync_pool(shmemx_current_core());
}
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_core_sync_counter() noexcept {
  return shmemx_core_sync_counter(shmemx_current_core());
}
SHMEM_DEVICE shmemi_device_host_state_t* shmemi_get_state() noexcept {
  return aclshmemi_get_state();
}

/* The address in `pe` of a symmetric address or of a word of a team's pool; NULL for a PE of another node. */
SHMEM_DEVICE void* shmemi_ptr(const void* address, int pe) noexcept {
  shmemi_sync_bit* const mine = shmemx_team_sync_pool(SHMEM_TEAM_WORLD, shmem_my_pe());
  shmemi_sync_bit* const theirs = shmemx_team_sync_pool(SHMEM_TEAM_WORLD, pe);
  if (mine == nullptr || theirs == nullptr) {
    return nullptr;
  }
  /* Each team has its words and a counter; team 0 is the first. */
  const uint64_t pools = uint64_t{SHMEM_MAX_TEAMS} * (SHMEMX_TEAM_POOL_WORDS + 1) * sizeof(shmemi_sync_bit);
  const uint64_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(mine);
  if (offset < pools) {
    return reinterpret_cast<char*>(theirs) + offset;
  }
  return shmem_ptr(address, pe);
}

/* A load and a store of the whole value. Stores wake no waiter: signals do. */
template <typename T>
SHMEM_DEVICE T shmemi_load(__gm__ T* address) noexcept {
  return aclshmemi_load(address);
}
template <typename T>
SHMEM_DEVICE void shmemi_store(__gm__ T* address, T value) noexcept {
  aclshmemi_store(address, value);
}

#endif
