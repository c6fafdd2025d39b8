/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Ascend SHMEM's device code looks up in its state, by its names: teams, words for barriers, the settings of
 * engines. C++ only; included by aclshmem_device.h.
 *
 * The state is a view that a call fills in, not a structure in device memory: team_pools looks a team up. Layouts are
 * not those of that library.
 */
#ifndef SHMEM_ACLSHMEM_STATE_H
#define SHMEM_ACLSHMEM_STATE_H

#ifndef __cplusplus
#error "aclshmem_state.h is for C++"
#endif

#include "aclshmem_types.h"

/* A team as one of its PEs sees it; size 0: no such team exists, or this PE is not in it. */
typedef struct aclshmemx_team_t {
  int mype;   /* this PE's number in the team */
  int start;  /* of the world, as stride */
  int stride; /* 1 for a team of one PE */
  int size;
  int team_idx; /* the number of the team */
} aclshmemx_team_t;

/* The team with this number. The result is the calling thread's, until its next call for the same number. */
inline aclshmemx_team_t* aclshmemi_find_team(int number) noexcept {
  static thread_local aclshmemx_team_t none{-1, 0, 1, 0, -1};
  static thread_local aclshmemx_team_t teams[ACLSHMEM_MAX_TEAMS];
  if (number < 0 || number >= ACLSHMEM_MAX_TEAMS) {
    return &none;
  }
  const shmem_team_t team = shmemx_team_by_number(number);
  aclshmemx_team_t& found = teams[number];
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
struct aclshmemi_team_pools {
  aclshmemx_team_t* operator[](int number) const noexcept { return aclshmemi_find_team(number); }
  aclshmemx_team_t* operator[](shmem_team_t team) const noexcept {
    return aclshmemi_find_team(shmemx_team_number(team));
  }
};

/* What aclshmemx_set_mte_config and the like have set: an offset in a core's own memory, and its size. */
typedef struct {
  int64_t aclshmem_ub;
  uint32_t ub_size;
  uint32_t sync_id;
} aclshmem_ub_config_t;

/* mype and npes are of the world; those of a team are in team_pools. The pools are those of the world and of the
 * calling core; on the host those of cores are NULL. */
typedef struct aclshmem_device_host_state_t {
  int mype;
  int npes;
  void* heap_base;
  uint64_t heap_size;
  aclshmemi_team_pools team_pools;
  shmemx_sync_word_t* sync_pool;
  shmemx_sync_word_t* sync_counter;
  shmemx_sync_word_t* core_sync_pool;
  shmemx_sync_word_t* core_sync_counter;
  aclshmem_ub_config_t mte_config;
  aclshmem_ub_config_t sdma_config;
  aclshmem_ub_config_t rdma_config;
  aclshmem_ub_config_t udma_config;
} aclshmem_device_host_state_t;

/* The words of a team of this PE, and the number of its last barrier there (shmemx_team_sync_pool). */
inline shmemx_sync_word_t* aclshmemi_get_team_sync_pool(int team_idx) noexcept {
  const shmem_team_t team = shmemx_team_by_number(team_idx);
  return shmemx_team_sync_pool(team, shmem_team_my_pe(team));
}
inline shmemx_sync_word_t* aclshmemi_get_team_sync_counter(int team_idx) noexcept {
  const shmem_team_t team = shmemx_team_by_number(team_idx);
  return shmemx_team_sync_counter(team, shmem_team_my_pe(team));
}

inline aclshmem_ub_config_t aclshmemi_config(int engine) noexcept {
  const shmemx_engine_t* const set = shmemx_engine(engine);
  return {set->scratch, set->scratch_size, set->sync_id};
}
/* The state as it is now, until the calling thread's next call. */
inline aclshmem_device_host_state_t* aclshmemi_get_state() noexcept {
  static thread_local aclshmem_device_host_state_t state;
  shmemx_core_t* const core = shmemx_current_core();
  shmemx_heap_stats_t heap = {};
  shmemx_heap_stats(&heap);
  state.mype = shmem_my_pe();
  state.npes = shmem_n_pes();
  state.heap_base = shmemx_heap_base();
  state.heap_size = heap.size;
  state.sync_pool = aclshmemi_get_team_sync_pool(0);
  state.sync_counter = aclshmemi_get_team_sync_counter(0);
  state.core_sync_pool = core != nullptr ? shmemx_core_sync_pool(core) : nullptr;
  state.core_sync_counter = core != nullptr ? shmemx_core_sync_counter(core) : nullptr;
  state.mte_config = aclshmemi_config(SHMEMX_ENGINE_MTE);
  state.sdma_config = aclshmemi_config(SHMEMX_ENGINE_SDMA);
  state.rdma_config = aclshmemi_config(SHMEMX_ENGINE_RDMA);
  state.udma_config = aclshmemi_config(SHMEMX_ENGINE_UDMA);
  return &state;
}

/* A barrier of the cores of this PE. */
inline void aclshmemi_barrier_core_soft() noexcept {
  shmemx_core_sync(shmemx_current_core());
}

/* A load and a store of the whole value. Stores wake no waiter: signals do. */
template <typename T>
T aclshmemi_load(T* address) noexcept {
  T value;
  __atomic_load(address, &value, __ATOMIC_ACQUIRE);
  return value;
}
template <typename T>
void aclshmemi_store(T* address, T value) noexcept {
  __atomic_store(address, &value, __ATOMIC_RELEASE);
}

#endif
