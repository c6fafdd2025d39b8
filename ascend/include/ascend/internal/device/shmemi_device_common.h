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

/* A word of a pool. */
typedef shmemx_sync_word_t shmemi_sync_bit;
#define SHMEMI_SYNCBIT_SIZE sizeof(shmemi_sync_bit)

/* A team as one of its PEs sees it; size 0: no such team exists, or this PE is not in it. */
typedef struct shmemi_team_t {
  int mype;   /* this PE's number in the team */
  int start;  /* of the world, as stride */
  int stride; /* 1 for a team of one PE */
  int size;
  int team_idx; /* the number of the team */
} shmemi_team_t;

/* The team with this number. The result is the calling thread's, until its next call for the same number. */
inline shmemi_team_t* shmemi_find_team(int number) noexcept {
  static thread_local shmemi_team_t none{-1, 0, 1, 0, -1};
  static thread_local shmemi_team_t teams[SHMEM_MAX_TEAMS];
  if (number < 0 || number >= SHMEM_MAX_TEAMS) {
    return &none;
  }
  const shmem_team_t team = shmemx_team_by_number(number);
  shmemi_team_t& found = teams[number];
  found = none;
  const int size = shmem_team_n_pes(team);
  if (size > 0) {
    found.mype = shmem_team_my_pe(team);
    found.start = shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD);
    found.stride = size > 1 ? shmem_team_translate_pe(team, 1, SHMEM_TEAM_WORLD) - found.start : 1;
    found.size = size;
    found.team_idx = number;
  }
  return &found;
}

/* Indexed by the number of a team, or by the team. */
struct shmemi_team_pools {
  shmemi_team_t* operator[](int number) const noexcept { return shmemi_find_team(number); }
  shmemi_team_t* operator[](shmem_team_t team) const noexcept { return shmemi_find_team(shmemx_team_number(team)); }
};

/* What the library knows: mype and npes are of the world; those of a team are in team_pools. The pools are those of
 * SHMEM_TEAM_WORLD and of the calling core; NULL on the host those of cores. */
typedef struct shmemi_device_host_state_t {
  int mype;
  int npes;
  void* heap_base;
  uint64_t heap_size;
  shmemi_team_pools team_pools;
  shmemi_sync_bit* sync_pool;
  shmemi_sync_bit* sync_counter;
  shmemi_sync_bit* core_sync_pool;
  shmemi_sync_bit* core_sync_counter;
} shmemi_device_host_state_t;

/* The sync pool of a team of this PE, and the number of its last barrier there. */
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_team_sync_array(int team_idx) noexcept {
  const shmem_team_t team = shmemx_team_by_number(team_idx);
  return shmemx_team_sync_pool(team, shmem_team_my_pe(team));
}
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_team_sync_counter(int team_idx) noexcept {
  const shmem_team_t team = shmemx_team_by_number(team_idx);
  return shmemx_team_sync_counter(team, shmem_team_my_pe(team));
}
/* The sync pool of the cores of this PE, and its counter; for cores only. */
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_core_sync_array() noexcept {
  return shmemx_core_sync_pool(shmemx_current_core());
}
SHMEM_DEVICE shmemi_sync_bit* shmemi_get_core_sync_counter() noexcept {
  return shmemx_core_sync_counter(shmemx_current_core());
}

/* The state as it is now, until the calling thread's next call. */
SHMEM_DEVICE shmemi_device_host_state_t* shmemi_get_state() noexcept {
  static thread_local shmemi_device_host_state_t state;
  const bool on_core = shmemx_current_core() != nullptr;
  shmemx_heap_stats_t heap = {};
  shmemx_heap_stats(&heap);
  state.mype = shmem_my_pe();
  state.npes = shmem_n_pes();
  state.heap_base = shmemx_heap_base();
  state.heap_size = heap.size;
  state.sync_pool = shmemi_get_team_sync_array(0);
  state.sync_counter = shmemi_get_team_sync_counter(0);
  state.core_sync_pool = on_core ? shmemi_get_core_sync_array() : nullptr;
  state.core_sync_counter = on_core ? shmemi_get_core_sync_counter() : nullptr;
  return &state;
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
  T value;
  __atomic_load(address, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename T>
SHMEM_DEVICE void shmemi_store(__gm__ T* address, T value) noexcept {
  __atomic_store(address, &value, __ATOMIC_RELEASE);
}

#endif
