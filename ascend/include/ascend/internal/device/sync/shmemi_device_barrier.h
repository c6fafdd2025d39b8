/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers by algorithm, by the names of Ascend SHMEM's device code. See ../shmemi_device_common.h.
 *
 * Called by all cores of all members, with the same algorithm. More than there: they also synchronise the cores of each
 * PE, before and after, and complete the core's puts. They go through no device; on several nodes they are
 * aclshmem_barrier. An error stays with the core, and shmemx_launch returns it.
 */
#ifndef SHMEM_ASCEND_SHMEMI_DEVICE_BARRIER_H
#define SHMEM_ASCEND_SHMEMI_DEVICE_BARRIER_H

#include "shmemi_device_p2p.h" /* IWYU pragma: export */

/* Dissemination, on core 0. */
SHMEM_DEVICE void shmemi_barrier_npu_v1(shmemi_team_t* team) noexcept {
  shmemx_core_barrier_by(shmemx_current_core(), shmemx_team_by_number(team->team_idx), "npu_v1");
}
/* Dissemination in groups, shared by the cores. */
SHMEM_DEVICE void shmemi_barrier_npu_v2(shmemi_team_t* team) noexcept {
  shmemx_core_barrier_by(shmemx_current_core(), shmemx_team_by_number(team->team_idx), "npu_v2");
}
/* Centralized, by pull: the cores share the PEs to look at. */
SHMEM_DEVICE void shmemi_barrier_npu_v3(shmemi_team_t* team) noexcept {
  shmemx_core_barrier_by(shmemx_current_core(), shmemx_team_by_number(team->team_idx), "npu_v3");
}

/* A barrier of the cores of this PE. */
template <bool IsAivOnly = true>
SHMEM_DEVICE void shmemi_barrier_core() noexcept {
  shmemx_core_sync(shmemx_current_core());
}

#endif
