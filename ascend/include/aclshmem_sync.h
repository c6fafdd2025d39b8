/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ascend SHMEM: barriers, on the host, on cores and in streams. Included by aclshmem.h.
 */
#ifndef SHMEM_ACLSHMEM_SYNC_H
#define SHMEM_ACLSHMEM_SYNC_H

/* NOLINTBEGIN(modernize-use-nullptr): these are C. */
#include "aclshmem_types.h"

/* ---- Barriers ----
 *
 * On the host they begin after the work of the stream NULL. On a core they synchronise all cores of all members. */

ACLSHMEM_INLINE void aclshmem_barrier_all(void) SHMEM_NOEXCEPT {
  shmemx_await_default_stream();
  shmem_barrier_all();
}
ACLSHMEM_INLINE void aclshmem_sync_all(void) SHMEM_NOEXCEPT {
  shmemx_await_default_stream();
  shmem_sync_all();
}
/* A team of -1 does nothing. */
ACLSHMEM_INLINE void aclshmem_barrier(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (team == ACLSHMEM_TEAM_INVALID) {
    return;
  }
  shmemx_await_default_stream();
  shmemx_team_barrier(shmemx_team_by_number(team));
}
ACLSHMEM_INLINE void aclshmem_sync(aclshmem_team_t team) SHMEM_NOEXCEPT {
  if (team == ACLSHMEM_TEAM_INVALID) {
    return;
  }
  shmemx_await_default_stream();
  shmem_team_sync(shmemx_team_by_number(team));
}
/* In the order of the stream, which shmemx_stream_create made; NULL: a stream of the library. Errors are
 * reported by shmemx_stream_synchronize. */
ACLSHMEM_INLINE void aclshmemx_barrier_on_stream(aclshmem_team_t team, aclrtStream stream) SHMEM_NOEXCEPT {
  if (team != ACLSHMEM_TEAM_INVALID) {
    shmemx_barrier_on_stream(shmemx_team_by_number(team), (shmemx_stream_t*)stream);
  }
}
ACLSHMEM_INLINE void aclshmemx_barrier_all_on_stream(aclrtStream stream) SHMEM_NOEXCEPT {
  shmemx_barrier_on_stream(SHMEM_TEAM_WORLD, (shmemx_stream_t*)stream);
}
/* Waits for the transfers that PEs of this team have started. */
typedef struct {
  aclshmem_team_t team_id;
} aclshmem_handle_t;
/* In the order of the stream: completes this PE's transfers, then waits until all members have arrived. */
ACLSHMEM_INLINE void aclshmemx_handle_wait(aclshmem_handle_t handle, aclrtStream stream) SHMEM_NOEXCEPT {
  aclshmemx_barrier_on_stream(handle.team_id, stream);
}
/* The word that kernels get: see shmemx_get_ffts_config in shmem_device.h. 0 before aclshmemx_init_attr. */
ACLSHMEM_INLINE uint64_t util_get_ffts_config(void) SHMEM_NOEXCEPT {
  return aclshmemi_running() ? shmemx_get_ffts_config() : 0;
}

/* NOLINTEND(modernize-use-nullptr) */
#endif
